#include "lib/stats/compute.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/run_threads.h"
#include "lib/base/status_macros.h"
#include "lib/stats/chunk.h"
#include "lib/stats/mix.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {
namespace {

using internal::ChunkInput;
using internal::kChunkElements;

// What one thread takes at a time: 1 Mi elements, merged in order within, so
// that a 2 GiB tensor leaves a thousand partial results and not 32 thousand.
constexpr int64_t kSpanElements = 32 * kChunkElements;

// Types whose elements float32 may not hold: hashed by their own bits.
bool HashesOwnBits(DType dtype) {
  switch (dtype) {
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
    case DType::kC64:
      return true;
    default:
      return false;
  }
}

uint64_t CanonicalF32(uint32_t bits) {
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? kCanonicalNan : bits;
}

// Returns element `i` as hashed, sign- and zero-extended to 64 bits.
uint64_t OwnBits(DType dtype, const std::byte* bytes, int64_t i) {
  if (dtype == DType::kI32 || dtype == DType::kU32) {
    uint32_t bits;
    std::memcpy(&bits, bytes + i * 4, 4);
    return bits;
  }
  uint64_t bits;
  std::memcpy(&bits, bytes + i * 8, 8);
  if (dtype == DType::kC64) {
    return CanonicalF32(static_cast<uint32_t>(bits)) |
           CanonicalF32(static_cast<uint32_t>(bits >> 32)) << 32;
  }
  if (dtype == DType::kF64 &&
      (bits & 0x7FFFFFFFFFFFFFFFull) > 0x7FF0000000000000ull) {
    return 0x7FF8000000000000ull;
  }
  return bits;
}

void HashOwnBits(const TensorView& tensor, int64_t begin, int64_t count,
                 uint64_t first_index, TensorStats* stats) {
  const bool narrow =
      tensor.dtype == DType::kI32 || tensor.dtype == DType::kU32;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = OwnBits(tensor.dtype, tensor.bytes.data(), begin + i);
    const uint64_t index = first_index + i;
    stats->h_set +=
        narrow ? SetMix(static_cast<uint32_t>(bits)) : SetMix64(bits);
    stats->h_pos += GroupKey(GroupHash(index / kGroupSize)) *
                    (LaneFactor(index % kGroupSize) * bits);
  }
}

// Reads `count` elements from `begin` as float32. C64 gives its real part.
void ReadAsFloat(const TensorView& tensor, int64_t begin, int64_t count,
                 float* out) {
  if (tensor.dtype == DType::kC64) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(out + i, tensor.bytes.data() + (begin + i) * 8, 4);
    }
    return;
  }
  const int64_t bits = DTypeBits(tensor.dtype);
  const absl::Status status = ConvertToFloat(
      tensor.dtype,
      tensor.bytes.subspan(begin * bits / 8, (count * bits + 7) / 8),
      absl::MakeSpan(out, count));
  FF_CHECK(status.ok());  // sizes and dtype were checked before
}

// Returns one span's statistics, chunk by chunk in order.
TensorStats ComputeSpan(const TensorView& tensor, int64_t begin, int64_t end,
                        const ComputeOptions& options) {
  const internal::ChunkFunction chunk = internal::BestChunkFunction();
  const bool own_bits = HashesOwnBits(tensor.dtype);
  std::vector<float> floats;
  TensorStats total;
  for (; begin < end; begin += kChunkElements) {
    ChunkInput input;
    input.count = std::min(kChunkElements, end - begin);
    input.first_index = static_cast<uint64_t>(options.index_offset + begin);
    input.request = options.request;
    if (own_bits) input.request.hashes = false;
    switch (tensor.dtype) {
      case DType::kF32:
        input.data = tensor.bytes.data() + begin * 4;
        break;
      case DType::kBF16:
      case DType::kF16:
        input.data = tensor.bytes.data() + begin * 2;
        input.source = tensor.dtype == DType::kBF16 ? internal::Source::kBF16
                                                    : internal::Source::kF16;
        break;
      default:
        floats.resize(kChunkElements);
        ReadAsFloat(tensor, begin, input.count, floats.data());
        input.data = floats.data();
    }
    TensorStats part;
    chunk(input, &part);
    if (own_bits && options.request.hashes) {
      HashOwnBits(tensor, begin, input.count, input.first_index, &part);
    }
    total = MergeStats(total, part);
  }
  return total;
}

void TakeSamples(const TensorView& tensor, int64_t numel, TensorStats* stats) {
  if (DTypeBits(tensor.dtype) < 8) {
    std::vector<float> all(numel);
    ReadAsFloat(tensor, 0, numel, all.data());
    for (int k = 0; k < kNumSamples; ++k) {
      stats->samples[k] = all[SampleIndex(k, numel)];
    }
    return;
  }
  for (int k = 0; k < kNumSamples; ++k) {
    ReadAsFloat(tensor, SampleIndex(k, numel), 1, &stats->samples[k]);
  }
}

absl::Status Validate(const TensorView& tensor, const ComputeOptions& options) {
  if (tensor.dtype == DType::kF6E2M3 || tensor.dtype == DType::kF6E3M2) {
    return absl::UnimplementedError(absl::StrCat(
        "statistics of ", DTypeName(tensor.dtype), ", whose packing is open"));
  }
  const auto size = CheckedSizeBytes(tensor.dtype, tensor.shape);
  if (!size || *size != static_cast<int64_t>(tensor.bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor of ", DTypeName(tensor.dtype), " ", ShapeToString(tensor.shape),
        ": found ", tensor.bytes.size(), " bytes, expected ",
        size ? absl::StrCat(*size) : "a size that int64 holds"));
  }
  if (options.index_offset < 0 || options.index_offset % kGroupSize != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("index offset ", options.index_offset,
                     ": expected a multiple of ", kGroupSize));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorStats> ComputeTensorStats(const TensorView& tensor,
                                               const ComputeOptions& options) {
  FF_RETURN_IF_ERROR(Validate(tensor, options));
  const int64_t numel = *CheckedNumElements(tensor.shape);
  const int64_t num_spans = (numel + kSpanElements - 1) / kSpanElements;
  std::vector<TensorStats> parts(num_spans);
  std::atomic<int64_t> next{0};
  const auto work = [&](int) {
    for (int64_t i = next++; i < num_spans; i = next++) {
      parts[i] = ComputeSpan(tensor, i * kSpanElements,
                             std::min(numel, (i + 1) * kSpanElements), options);
    }
  };
  RunOnThreads(
      static_cast<int>(std::min<int64_t>(options.num_threads, num_spans)),
      work);

  TensorStats total;
  for (const TensorStats& part : parts) total = MergeStats(total, part);
  if (options.request.samples && numel > 0) TakeSamples(tensor, numel, &total);
  return total;
}

}  // namespace firstframe
