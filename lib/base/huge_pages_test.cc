#include "lib/base/huge_pages.h"

#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(AdviseHugePages, LeavesContentsAlone) {
  std::vector<char> data(size_t{9} << 20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7);
  AdviseHugePages(data.data(), data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    ASSERT_EQ(data[i], static_cast<char>(i * 7)) << i;
  }
}

TEST(AdviseHugePages, TakesNothingAndLittle) {
  AdviseHugePages(nullptr, 0);
  char little[16] = {};
  AdviseHugePages(little, sizeof(little));
  EXPECT_EQ(little[0], 0);
}

}  // namespace
}  // namespace firstframe
