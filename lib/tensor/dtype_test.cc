#include "lib/tensor/dtype.h"

#include <string>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(DType, TableIsIndexedByTheEnumerator) {
  ASSERT_EQ(AllDTypes().size(), static_cast<size_t>(kNumDTypes));
  for (int i = 0; i < kNumDTypes; ++i) {
    EXPECT_EQ(static_cast<int>(AllDTypes()[i].dtype), i);
    EXPECT_EQ(&GetDTypeInfo(static_cast<DType>(i)), &AllDTypes()[i]);
  }
}

TEST(DType, NamesRoundTripAndAreExactInCase) {
  for (const DTypeInfo& info : AllDTypes()) {
    EXPECT_EQ(ParseDType(info.name), info.dtype) << std::string(info.name);
    if (!info.torch_name.empty()) {
      EXPECT_EQ(ParseTorchDType(info.torch_name), info.dtype);
    }
  }
  EXPECT_EQ(ParseDType("f32"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
  EXPECT_EQ(ParseDType("F32 "), std::nullopt);
  EXPECT_EQ(ParseTorchDType("torch.bfloat16"), DType::kBF16);
  EXPECT_EQ(ParseTorchDType("torch."), std::nullopt);
}

TEST(DType, SizesInBits) {
  EXPECT_EQ(DTypeBits(DType::kF4), 4);
  EXPECT_EQ(DTypeBits(DType::kF6E2M3), 6);
  EXPECT_EQ(DTypeBits(DType::kBool), 8);
  EXPECT_EQ(DTypeBits(DType::kBF16), 16);
  EXPECT_EQ(DTypeBits(DType::kC64), 64);
}

}  // namespace
}  // namespace firstframe
