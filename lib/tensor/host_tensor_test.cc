#include "lib/tensor/host_tensor.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostTensor, IsZeroedAndAligned) {
  ASSERT_OK_AND_ASSIGN(HostTensor tensor,
                       HostTensor::Create(DType::kF32, {2, 3}));
  EXPECT_EQ(tensor.size_bytes(), 24);
  EXPECT_EQ(tensor.num_elements(), 6);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes().data()) % 64, 0u);
  EXPECT_THAT(tensor.data<float>(), Each(0.0f));
}

TEST(HostTensor, LargeTensorsBeginAtAHugePage) {
  ASSERT_OK_AND_ASSIGN(const HostTensor tensor,
                       HostTensor::Create(DType::kU8, {(5 << 20) + 1}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes().data()) % (2 << 20), 0u);
  EXPECT_EQ(tensor.bytes().back(), std::byte{0});
}

TEST(HostTensor, ScalarsAndEmptyTensors) {
  ASSERT_OK_AND_ASSIGN(const HostTensor scalar,
                       HostTensor::Create(DType::kI64, {}));
  EXPECT_EQ(scalar.num_elements(), 1);
  ASSERT_OK_AND_ASSIGN(const HostTensor empty,
                       HostTensor::Create(DType::kF32, {4, 0}));
  EXPECT_EQ(empty.num_elements(), 0);
  EXPECT_TRUE(empty.bytes().empty());
  EXPECT_TRUE(empty.data<float>().empty());
  EXPECT_EQ(HostTensor().num_elements(), 0);
}

TEST(HostTensor, RefusesSizesThatDoNotExist) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_THAT(HostTensor::Create(DType::kF32, {kHuge, 4}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("F32")));
  EXPECT_THAT(
      HostTensor::Create(DType::kF4, {3}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("whole bytes")));
#if !defined(__SANITIZE_ADDRESS__)  // which stops at such a request
  EXPECT_THAT(
      HostTensor::Create(DType::kU8, {kHuge >> 3}, HostTensor::Fill::kNone),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("576460752303423488")));
#endif
}

TEST(HostTensor, CopiesAViewThatIsNotAligned) {
  std::vector<std::byte> buffer(9);
  const float values[2] = {1.5f, -2.0f};
  std::memcpy(buffer.data() + 1, values, 8);
  const TensorView view = {
      DType::kF32, {2}, absl::MakeConstSpan(buffer).subspan(1)};
  EXPECT_THAT(TypedSpan<float>(view),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("aligned to 4")));
  ASSERT_OK_AND_ASSIGN(const HostTensor copy, HostTensor::CopyOf(view));
  EXPECT_THAT(copy.data<float>(), ElementsAre(1.5f, -2.0f));
  ASSERT_OK_AND_ASSIGN(const auto span, TypedSpan<float>(copy.view()));
  EXPECT_THAT(span, ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(
      TypedSpan<int32_t>(copy.view()),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("F32")));
  EXPECT_THAT(HostTensor::CopyOf({DType::kF32, {3}, view.bytes}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("8 bytes, expected 12")));
}

TEST(HostTensor, MovesLeaveAnEmptyTensor) {
  ASSERT_OK_AND_ASSIGN(HostTensor first, HostTensor::Create(DType::kI8, {3}));
  first.mutable_data<int8_t>()[1] = -7;
  HostTensor second = std::move(first);
  EXPECT_THAT(second.data<int8_t>(), ElementsAre(0, -7, 0));
  EXPECT_EQ(first.num_elements(), 0);  // NOLINT: the moved-from state is stated
  EXPECT_THAT(first.data<float>(), ElementsAre());
}

TEST(HostTensor, Reshapes) {
  ASSERT_OK_AND_ASSIGN(HostTensor tensor,
                       HostTensor::Create(DType::kBF16, {2, 6}));
  EXPECT_THAT(tensor.Reshape({3, 4}), IsOk());
  EXPECT_THAT(tensor.shape(), ElementsAre(3, 4));
  EXPECT_THAT(tensor.Reshape({5}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("12 elements")));
}

TEST(HostTensor, EveryTypeIsReadByItsWidth) {
  EXPECT_TRUE(IsElementType<uint16_t>(DType::kBF16));
  EXPECT_TRUE(IsElementType<uint8_t>(DType::kF8E4M3));
  EXPECT_FALSE(IsElementType<float>(DType::kC64));
  EXPECT_FALSE(IsElementType<uint8_t>(DType::kF4));
  EXPECT_FALSE(IsElementType<int32_t>(DType::kF32));
}

}  // namespace
}  // namespace firstframe
