#include "lib/load/file_system.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kMounts[] =
    "22 1 0:21 / / rw,relatime - ext4 /dev/vda rw,errors=remount-ro\n"
    "25 22 0:23 / /dev/shm rw - tmpfs tmpfs rw,size=1g\n"
    "30 22 0:40 / /mnt/a\\040b rw,noatime shared:1 master:2 - nfs4 "
    "server:/x\\040y rw,vers=4.2\n"
    "31 22 0:41 / /mnt/twice rw - ext4 /dev/vdb rw\n"
    "32 22 0:42 / /mnt/twice ro - lustre 10.0.0.1@tcp:/fs ro\n"
    "not a mount line\n";

TEST(FileSystem, FindsTheDeepestMount) {
  ASSERT_OK_AND_ASSIGN(const FileSystem root, FindMount(kMounts, "/home/x"));
  EXPECT_EQ(root.type, "ext4");
  EXPECT_EQ(root.kind, FileSystemKind::kLocal);
  EXPECT_EQ(root.options, "rw,relatime,rw,errors=remount-ro");
  ASSERT_OK_AND_ASSIGN(const FileSystem shm, FindMount(kMounts, "/dev/shm/x"));
  EXPECT_EQ(shm.kind, FileSystemKind::kMemory);
  ASSERT_OK_AND_ASSIGN(const FileSystem other, FindMount(kMounts, "/dev/shmx"));
  EXPECT_EQ(other.mount_point, "/");
}

TEST(FileSystem, UnescapesAndSkipsOptionalFields) {
  ASSERT_OK_AND_ASSIGN(const FileSystem nfs,
                       FindMount(kMounts, "/mnt/a b/model"));
  EXPECT_EQ(nfs.mount_point, "/mnt/a b");
  EXPECT_EQ(nfs.device, "server:/x y");
  EXPECT_EQ(nfs.kind, FileSystemKind::kNetwork);
}

TEST(FileSystem, LaterMountHidesEarlier) {
  ASSERT_OK_AND_ASSIGN(const FileSystem top, FindMount(kMounts, "/mnt/twice"));
  EXPECT_EQ(top.type, "lustre");
}

TEST(FileSystem, NoMountIsNotFound) {
  EXPECT_THAT(FindMount("", "/x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/x")));
}

TEST(FileSystem, KindsByType) {
  EXPECT_EQ(KindOfFileSystemType("hugetlbfs"), FileSystemKind::kMemory);
  EXPECT_EQ(KindOfFileSystemType("fuse.sshfs"), FileSystemKind::kNetwork);
  EXPECT_EQ(KindOfFileSystemType("fuseblk"), FileSystemKind::kLocal);
  EXPECT_EQ(KindOfFileSystemType("overlay"), FileSystemKind::kLocal);
}

TEST(FileSystem, DescribesARealPath) {
  testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(const FileSystem here, DescribeFileSystem(dir.path()));
  EXPECT_FALSE(here.type.empty());
  EXPECT_THAT(DescribeFileSystem(dir.File("absent")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

}  // namespace
}  // namespace firstframe
