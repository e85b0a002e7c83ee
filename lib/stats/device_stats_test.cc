// The device against the CPU, for every type, size and request.

#include "lib/stats/device_stats.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/stats/compute.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/host_tensor.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

constexpr StatsRequest kAll = {
    .hashes = true, .sketch = true, .exponents = true, .samples = true};

bool HasDevice() {
  const auto count = cuda::GetRuntime().DeviceCount();
  return count.ok() && *count > 0;
}

absl::StatusOr<TensorStats> OnDevice(const HostTensor& tensor,
                                     const StatsRequest& request,
                                     size_t shift_bytes = 0) {
  FF_ASSIGN_OR_RETURN(const auto stats, DeviceStats::Create());
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream, cuda::Stream::Create());
  FF_ASSIGN_OR_RETURN(
      const cuda::DeviceBuffer buffer,
      cuda::DeviceBuffer::Allocate(tensor.size_bytes() + shift_bytes + 1));
  FF_RETURN_IF_ERROR(stream.CopyAsync(
      buffer.data() + shift_bytes, tensor.bytes().data(), tensor.size_bytes()));
  FF_ASSIGN_OR_RETURN(
      const PendingStats pending,
      stats->Enqueue(buffer.data() + shift_bytes, tensor.dtype(),
                     tensor.num_elements(), request, stream.handle()));
  return pending.Read();
}

HostTensor Random(DType dtype, int64_t count, bool odd = false) {
  std::mt19937 random(static_cast<uint32_t>(count) + 3);
  std::normal_distribution<float> normal(0.3f, 20.0f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  for (int64_t i = 5; i < count; i += 37) values[i] = 0;
  if (odd) {
    for (int64_t i = 0; i < count; i += 1000) values[i] = NAN;
    for (int64_t i = 1; i < count; i += 1501) values[i] = INFINITY;
    for (int64_t i = 7; i < count; i += 3001) values[i] = -INFINITY;
  }
  HostTensor tensor = *HostTensor::Create(dtype, {count});
  EXPECT_TRUE(ConvertFromFloat(values, dtype, tensor.mutable_bytes()).ok());
  return tensor;
}

void ExpectEqual(const TensorStats& got, const TensorStats& want) {
  EXPECT_EQ(got.numel, want.numel);
  EXPECT_EQ(got.nan, want.nan);
  EXPECT_EQ(got.inf_pos, want.inf_pos);
  EXPECT_EQ(got.inf_neg, want.inf_neg);
  EXPECT_EQ(got.zero, want.zero);
  EXPECT_EQ(got.min, want.min);
  EXPECT_EQ(got.max, want.max);
  EXPECT_EQ(got.amax, want.amax);
  EXPECT_EQ(got.amax_index, want.amax_index);
  EXPECT_EQ(got.h_set, want.h_set);
  EXPECT_EQ(got.h_pos, want.h_pos);
  EXPECT_EQ(got.exponents, want.exponents);
  EXPECT_EQ(got.samples, want.samples);
  const double norm = std::sqrt(want.m2 + want.mean * want.sum) + 1e-30;
  EXPECT_NEAR(got.sum, want.sum, 1e-6 * (want.abs_sum + 1e-30));
  EXPECT_NEAR(got.abs_sum, want.abs_sum, 1e-6 * (want.abs_sum + 1e-30));
  EXPECT_NEAR(std::sqrt(got.m2), std::sqrt(want.m2), 1e-5 * norm);
  for (int j = 0; j < kSketchSize; ++j) {
    EXPECT_NEAR(got.sketch[j], want.sketch[j], 3e-6 * norm) << j;
  }
}

TEST(DeviceStats, SaysWhatIsMissing) {
  if (HasDevice()) GTEST_SKIP() << "there is a device";
  const auto stats = DeviceStats::Create();
  EXPECT_TRUE(stats.status().code() == absl::StatusCode::kUnimplemented ||
              stats.status().code() == absl::StatusCode::kUnavailable)
      << stats.status();
}

TEST(DeviceStats, AgreesWithTheCpuForEveryType) {
  if (!HasDevice()) GTEST_SKIP() << "no device";
  for (const DType dtype :
       {DType::kBF16, DType::kF16, DType::kF32, DType::kF64, DType::kF8E4M3,
        DType::kF8E5M2, DType::kBool, DType::kU8, DType::kI8, DType::kI16,
        DType::kU16, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    for (const int64_t count :
         {1, 7, 8, 511, 512, 513, 4096, 100003, 3000000}) {
      SCOPED_TRACE(std::string(DTypeName(dtype)) + " " + std::to_string(count));
      const HostTensor tensor = Random(dtype, count);
      ASSERT_OK_AND_ASSIGN(const TensorStats got, OnDevice(tensor, kAll));
      ExpectEqual(got, *ComputeTensorStats(tensor.view(), {.request = kAll}));
    }
  }
}

TEST(DeviceStats, SetsNonFiniteElementsApart) {
  if (!HasDevice()) GTEST_SKIP() << "no device";
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const HostTensor tensor = Random(dtype, 20011, true);
    ASSERT_OK_AND_ASSIGN(const TensorStats got, OnDevice(tensor, kAll));
    ExpectEqual(got, *ComputeTensorStats(tensor.view(), {.request = kAll}));
  }
}

TEST(DeviceStats, TakesEmptyAndUnalignedTensors) {
  if (!HasDevice()) GTEST_SKIP() << "no device";
  const HostTensor empty = *HostTensor::Create(DType::kBF16, {0});
  ASSERT_OK_AND_ASSIGN(const TensorStats none, OnDevice(empty, kAll));
  EXPECT_EQ(none.amax_index, -1);
  EXPECT_EQ(none.h_set, 0u);
  const HostTensor tensor = Random(DType::kBF16, 50001);
  ASSERT_OK_AND_ASSIGN(const TensorStats got, OnDevice(tensor, kAll, 2));
  ExpectEqual(got, *ComputeTensorStats(tensor.view(), {.request = kAll}));
}

TEST(DeviceStats, GivesTheSameBitsEveryTime) {
  if (!HasDevice()) GTEST_SKIP() << "no device";
  const HostTensor tensor = Random(DType::kF32, 5000011);
  ASSERT_OK_AND_ASSIGN(const TensorStats one, OnDevice(tensor, kAll));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const TensorStats again, OnDevice(tensor, kAll));
    EXPECT_EQ(std::memcmp(&one, &again, sizeof(one)), 0);
  }
}

TEST(DeviceStats, ComputesWhatIsAskedAlone) {
  if (!HasDevice()) GTEST_SKIP() << "no device";
  const HostTensor tensor = Random(DType::kBF16, 100000);
  for (int bits = 0; bits < 16; ++bits) {
    const StatsRequest request = {.hashes = (bits & 1) != 0,
                                  .sketch = (bits & 2) != 0,
                                  .exponents = (bits & 4) != 0,
                                  .samples = (bits & 8) != 0};
    ASSERT_OK_AND_ASSIGN(const TensorStats got, OnDevice(tensor, request));
    ExpectEqual(got, *ComputeTensorStats(tensor.view(), {.request = request}));
  }
}

}  // namespace
}  // namespace firstframe
