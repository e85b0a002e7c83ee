#include "lib/load/sources.h"

#include <fcntl.h>

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/load/staging.h"
#include "lib/load/testing_checkpoint.h"
#include "lib/load/transfer.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::RandomCheckpoint;

class SourcesTest : public ::testing::Test {
 protected:
  // Two files of about 14 MB.
  SourcesTest() : checkpoint_(20, 13'000'000) {}

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(plan_, MakeLoadPlan(checkpoint_.source));
    ASSERT_OK_AND_ASSIGN(sources_, OpenSources(plan_, PathPolicy::kAuto));
  }

  // Puts file `f` out of the page cache; false where that cannot be done.
  bool Evict(size_t f) {
    const DataFile& file = sources_.files[f].buffered;
    return EvictFromPageCache(file).ok() &&
           ProbeResidency(file).fraction() == 0.0;
  }

  ChosenPieces Choose() {
    const ArenaRange all[] = {{0, plan_.arena_bytes}};
    return ChoosePieces(plan_, sources_,
                        sources_.Probe(2, ResidencyMap::Detail::kSample), all,
                        PieceOptions());
  }

  // The paths on which the first `size` bytes of file `f`, or the rest of it,
  // are read.
  static std::set<ReadPath> PathsOf(const ChosenPieces& chosen, uint32_t f,
                                    uint64_t begin = 0,
                                    uint64_t end = UINT64_MAX) {
    std::set<ReadPath> paths;
    for (const Piece& piece : chosen.list.pieces) {
      if (piece.file == f && piece.file_end > begin && piece.file_begin < end) {
        paths.insert(piece.path);
      }
    }
    return paths;
  }

  RandomCheckpoint checkpoint_;
  LoadPlan plan_;
  OpenedSources sources_;
};

TEST_F(SourcesTest, ResidentFilesAreReadFromThePageCache) {
  for (const uint32_t f : {0, 1}) {
    ASSERT_THAT(FillPageCache(sources_.files[f].buffered), IsOk());
    EXPECT_EQ(PathsOf(Choose(), f), std::set<ReadPath>{ReadPath::kCached});
  }
}

TEST_F(SourcesTest, EveryExtentGoesByItsOwnResidency) {
  if (!sources_.files[0].direct || !Evict(0)) {
    GTEST_SKIP() << "needs O_DIRECT and a cache that can be emptied";
  }
  // The first 6 MiB of file 0 are in, the rest out; file 1 is in.
  ::posix_fadvise(sources_.files[0].buffered.fd(), 0, 0, POSIX_FADV_RANDOM);
  std::vector<std::byte> buffer(6 << 20);
  ASSERT_THAT(sources_.files[0].buffered.Read(0, absl::MakeSpan(buffer)),
              IsOk());
  ASSERT_THAT(FillPageCache(sources_.files[1].buffered), IsOk());
  const ChosenPieces chosen = Choose();
  EXPECT_EQ(PathsOf(chosen, 0, 0, 3 << 20),
            std::set<ReadPath>{ReadPath::kCached});
  EXPECT_EQ(PathsOf(chosen, 0, 9 << 20), std::set<ReadPath>{ReadPath::kDirect});
  EXPECT_EQ(PathsOf(chosen, 1), std::set<ReadPath>{ReadPath::kCached});
}

TEST_F(SourcesTest, AbsentBytesWithoutDirectReadsAreBufferedAndSaidSo) {
  sources_.files[0].direct.reset();
  sources_.files[0].no_direct_reason = "overlay refuses O_DIRECT";
  if (!Evict(0)) GTEST_SKIP() << "the cache cannot be emptied here";
  const ChosenPieces chosen = Choose();
  EXPECT_EQ(PathsOf(chosen, 0), std::set<ReadPath>{ReadPath::kCached});
  ASSERT_EQ(chosen.degraded.size(), 1u);
  EXPECT_EQ(chosen.degraded[0],
            "no direct reads, buffered instead: overlay refuses O_DIRECT");
}

// What lies on a server: buffered, in larger reads, by more threads; never
// direct, and from the page cache once it is there.
TEST_F(SourcesTest, AServersFilesTakeTheNetworkPathIntoEitherMemory) {
  for (OpenedFile& file : sources_.files) {
    file.file_system.kind = FileSystemKind::kNetwork;
  }
  if (!Evict(0) || !Evict(1)) {
    GTEST_SKIP() << "the cache cannot be emptied here";
  }
  FakeCuda fake;
  for (cuda::Runtime* const runtime : {static_cast<cuda::Runtime*>(nullptr),
                                       static_cast<cuda::Runtime*>(&fake)}) {
    if (!Evict(0) || !Evict(1)) GTEST_SKIP();
    const ChosenPieces chosen = Choose();
    ASSERT_EQ(PathsOf(chosen, 0), std::set<ReadPath>{ReadPath::kNetwork});
    ASSERT_EQ(PathsOf(chosen, 1), std::set<ReadPath>{ReadPath::kNetwork});
    TransferOptions options = ResolveTransferOptions({}, false, 1, {2, 2});
    ASSERT_OK_AND_ASSIGN(
        const StagingRing ring,
        StagingRing::Create(RingBytes(options, chosen.list, runtime != nullptr),
                            0, UINT64_MAX, 1, runtime));
    ASSERT_OK_AND_ASSIGN(const HostArena host,
                         HostArena::Allocate(plan_.arena_bytes));
    ASSERT_OK_AND_ASSIGN(const cuda::DeviceBuffer device,
                         cuda::DeviceBuffer::Allocate(plan_.arena_bytes, fake));
    std::byte* const arena = runtime == nullptr ? host.data() : device.data();
    ASSERT_OK_AND_ASSIGN(const TransferStats stats,
                         RunTransfer(chosen.list, 1, sources_, ring,
                                     {arena, runtime, 0}, options, {}));
    EXPECT_EQ(stats.bytes_by_path[static_cast<int>(ReadPath::kNetwork)],
              chosen.list.tensor_bytes);
    EXPECT_GT(stats.threads, 2) << "a server is asked by more than the CPUs";
    EXPECT_EQ(checkpoint_.FirstDifference(plan_, arena), "");
    // Buffered reads leave it in the page cache: the next load is answered
    // there.
    EXPECT_EQ(PathsOf(Choose(), 0), std::set<ReadPath>{ReadPath::kCached});
  }
}

}  // namespace
}  // namespace firstframe
