#include "lib/cuda/dynamic_library.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cuda/known_libraries.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kMathFiles[] = {"libdoes-not-exist.so.1",
                                            "libm.so.6"};
constexpr absl::string_view kMissingFiles[] = {"libnot-here.so.2",
                                               "libnot-here.so.1"};

TEST(DynamicLibrary, TriesNamesInOrderAndCallsWhatItFinds) {
  ASSERT_OK_AND_ASSIGN(const DynamicLibrary math,
                       DynamicLibrary::Open({"libm", kMathFiles, "", ""}));
  EXPECT_THAT(math.path(), HasSubstr("/libm.so.6"));
  ASSERT_OK_AND_ASSIGN(auto* square_root, math.Find<double(double)>("sqrt"));
  EXPECT_EQ(square_root(9.0), 3.0);
}

TEST(DynamicLibrary, MissingLibraryNamesFilesAndPackages) {
  EXPECT_THAT(
      DynamicLibrary::Open(
          {"Thing 2", kMissingFiles, "libthing2", "thing-cu13"}),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("Thing 2: tried libnot-here.so.2, "
                               "libnot-here.so.1: "),
                     HasSubstr("apt-get install libthing2, or pip install "
                               "thing-cu13"))));
}

TEST(DynamicLibrary, MissingFunctionNamesTheFile) {
  ASSERT_OK_AND_ASSIGN(const DynamicLibrary math,
                       DynamicLibrary::Open({"libm", kMathFiles, "", ""}));
  EXPECT_THAT(math.FindSymbol("ff_no_such_function"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("libm.so.6"),
                             HasSubstr("ff_no_such_function"))));
}

TEST(DynamicLibrary, DamagedFileIsReportedNotFatal) {
  const TempDir folder;
  folder.Write("libnot-here.so.1",
               "\x7f"
               "ELF but not quite");
  EXPECT_THAT(DynamicLibrary::Open({"Thing", kMissingFiles, "", ""},
                                   {{}, {folder.path()}}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(folder.path() + "/libnot-here.so.1")));
}

TEST(CandidatePaths, FindsPipsFolders) {
  const TempDir folder;
  const std::string cudnn = folder.Write(
      "env/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "x");
  const std::string second = folder.Write(
      "usr/lib/python3/dist-packages/nvidia/cu13/lib/libcudnn.so.9", "x");
  const std::string own = folder.Write("own/libcudnn.so.9", "x");
  const LibrarySearch search = {
      {folder.File("env"), folder.File("absent"), folder.File("usr")},
      {folder.File("own"), folder.File("nowhere")}};
  const std::vector<std::string> paths =
      CandidatePaths("libcudnn.so.9", search);
  ASSERT_GE(paths.size(), 3u);  // and the toolkit's own, where there is one
  EXPECT_EQ(paths[0], own);
  EXPECT_EQ(paths[1], cudnn);
  EXPECT_EQ(paths[2], second);
}

TEST(MakeLibrarySearch, ActiveEnvironmentComesFirst) {
  const TempDir folder;
  const std::string python = folder.Write("py/bin/python3", "#!/bin/sh\n");
  ASSERT_EQ(chmod(python.c_str(), 0755), 0);
  const std::string path = "/nonexistent/bin:relative:" + folder.File("py/bin");
  EXPECT_THAT(MakeLibrarySearch("/my/venv", "/my/conda", path).python_prefixes,
              ElementsAre("/my/venv", "/my/conda", folder.File("py"),
                          "/usr/local", "/usr"));
  EXPECT_THAT(MakeLibrarySearch("", "", "").python_prefixes,
              ElementsAre("/usr/local", "/usr"));
}

// Each opens, or says which package brings it.
TEST(KnownLibraries, OpenOrNameTheirPackage) {
  for (const LibrarySpec& spec :
       {kCudaDriver, kCublas, kCublasLt, kCudnn, kNccl, kCupti, kCufile}) {
    const absl::StatusOr<DynamicLibrary> library = DynamicLibrary::Open(spec);
    if (library.ok()) {
      EXPECT_THAT(library->path(), HasSubstr(std::string(spec.files[0].substr(
                                       0, spec.files[0].find(".so")))));
    } else {
      EXPECT_THAT(library, StatusIs(absl::StatusCode::kUnavailable,
                                    AllOf(HasSubstr(std::string(spec.name)),
                                          HasSubstr(std::string(spec.apt)))));
    }
  }
}

}  // namespace
}  // namespace firstframe::cuda
