#include "lib/base/byte_size.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using testing::IsOkAndHolds;
using testing::StatusIs;

TEST(ParseByteSize, ReadsUnits) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"4096", 4096},
      {"7B", 7},
      {"1k", 1000},
      {"1KB", 1000},
      {"1KiB", 1024},
      {"1.5mib", 1572864},
      {"3.15GB", 3150000000},
      {"2TiB", uint64_t{2} << 40},
      {"9007199254740993", 9007199254740993},
      {"9223372036854775807", 9223372036854775807u}};
  for (const auto& [text, bytes] : cases) {
    EXPECT_THAT(ParseByteSize(text), IsOkAndHolds(bytes)) << text;
  }
}

TEST(ParseByteSize, RefusesTheRest) {
  for (const char* text :
       {"", "GB", "-1", "1 GB", "1XB", "1.2.3", ".", "1e9", "nan", "inf",
        "0x10", "9223372036854775808", "99999999TB", "1KiBB", "+1"}) {
    EXPECT_THAT(ParseByteSize(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected a size")))
        << text;
  }
}

}  // namespace
}  // namespace firstframe
