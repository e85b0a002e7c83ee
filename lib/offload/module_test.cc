#include "lib/offload/module.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/offload/testing.h"

namespace firstframe {
namespace {

using ::firstframe::testing::MakeTensor;

TEST(FindStorageRanges, TiedTensorsAndViewsShareOne) {
  std::vector<OffloadTensor> tensors;
  tensors.push_back(MakeTensor("whole", 100, 0));
  tensors.push_back(MakeTensor("other", 50, 0));
  tensors.push_back(tensors[0]);
  tensors[2].name = "tied";
  tensors.push_back(tensors[0]);
  tensors[3].name = "view";
  tensors[3].data += 40;
  tensors[3].size_bytes = 60;
  tensors.push_back(MakeTensor("empty", 0, 0));
  const OffloadModule module(std::move(tensors));
  const auto ranges = FindStorageRanges(module);
  ASSERT_EQ(ranges.size(), 2u);
  ASSERT_EQ(ranges[0].members.size(), 3u);
  EXPECT_EQ(ranges[0].size_bytes, 100u);
  EXPECT_EQ(ranges[0].members[2].tensor, 3u);
  EXPECT_EQ(ranges[0].members[2].offset, 40u);
  EXPECT_EQ(ranges[1].members[0].tensor, 1u);
}

TEST(FindStorageRanges, NeighboursAreApart) {
  OffloadTensor whole = MakeTensor("a", 100, 0);
  OffloadTensor left = whole, right = whole;
  left.size_bytes = 60;
  right.data += 60;
  right.size_bytes = 40;
  const OffloadModule module({left, right});
  EXPECT_EQ(FindStorageRanges(module).size(), 2u);
}

TEST(FindStorageRanges, EqualAddressesOnTwoDevicesAreApart) {
  OffloadTensor host = MakeTensor("a", 100, 0), device = host;
  device.device = 0;
  EXPECT_EQ(FindStorageRanges(OffloadModule({host, device})).size(), 2u);
}

}  // namespace
}  // namespace firstframe
