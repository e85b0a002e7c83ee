#include "lib/tensor/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/tensor/small_float.h"

namespace firstframe {
namespace {

using internal::Decode;
using internal::DecodeE8M0;
using internal::DecodeF4;
using internal::Encode;
using internal::EncodeE8M0;
using internal::F16;
using internal::F8E4M3;
using internal::F8E4M3Fnuz;
using internal::F8E5M2;
using internal::F8E5M2Fnuz;
using internal::kFloatInfinity;
using internal::kFloatSign;

template <typename F>
constexpr std::array<float, 256> MakeTable() {
  std::array<float, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) table[i] = Decode<F>(i);
  return table;
}

template <typename T>
T LoadAt(const std::byte* bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T, typename Decoder>
void DecodeAll(const std::byte* source, absl::Span<float> target,
               Decoder decode) {
  for (size_t i = 0; i < target.size(); ++i) {
    target[i] = decode(LoadAt<T>(source, i));
  }
}

template <typename T, typename Encoder>
void EncodeAll(absl::Span<const float> source, std::byte* target,
               Encoder encode) {
  for (size_t i = 0; i < source.size(); ++i) {
    const T value = encode(source[i]);
    std::memcpy(target + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename F>
void DecodeByTable(const std::byte* source, absl::Span<float> target) {
  static constexpr std::array<float, 256> kTable = MakeTable<F>();
  DecodeAll<uint8_t>(source, target, [](uint8_t code) { return kTable[code]; });
}

template <typename T>
T FloatToInt(float value) {
  // 2^digits is exact in float32; the largest T often is not.
  constexpr float kLimit =
      2.0f *
      static_cast<float>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (!(value == value)) return 0;
  if (value >= kLimit) return std::numeric_limits<T>::max();
  if (value < static_cast<float>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

#if defined(__x86_64__)
// clang 14's __builtin_cpu_supports does not know "f16c".
bool HasF16C() {
  static const bool has = [] {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __builtin_cpu_supports("avx") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  }();
  return has;
}

// Both return how many elements they did, a multiple of 8.
__attribute__((target("avx,f16c"))) size_t DecodeF16Wide(
    const std::byte* source, absl::Span<float> target) {
  size_t i = 0;
  for (; i + 8 <= target.size(); i += 8) {
    const __m128i half =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + 2 * i));
    _mm256_storeu_ps(target.data() + i, _mm256_cvtph_ps(half));
  }
  return i;
}

__attribute__((target("avx,f16c"))) size_t EncodeF16Wide(
    absl::Span<const float> source, std::byte* target) {
  size_t i = 0;
  for (; i + 8 <= source.size(); i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(source.data() + i),
                                         _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + 2 * i), half);
  }
  return i;
}
#else
bool HasF16C() { return false; }
size_t DecodeF16Wide(const std::byte*, absl::Span<float>) { return 0; }
size_t EncodeF16Wide(absl::Span<const float>, std::byte*) { return 0; }
#endif

void DecodeF16(const std::byte* source, absl::Span<float> target) {
  const size_t done = HasF16C() ? DecodeF16Wide(source, target) : 0;
  DecodeAll<uint16_t>(source + 2 * done, target.subspan(done), F16ToFloat);
}

void EncodeF16(absl::Span<const float> source, std::byte* target) {
  const size_t done = HasF16C() ? EncodeF16Wide(source, target) : 0;
  EncodeAll<uint16_t>(source.subspan(done), target + 2 * done, FloatToF16);
}

absl::Status CheckSizes(DType dtype, size_t bytes, size_t floats) {
  if (bytes * 8 == floats * DTypeBits(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      bytes, " bytes of ", DTypeName(dtype), " are not ", floats, " elements"));
}

absl::Status NoConversion(DType dtype) {
  return absl::UnimplementedError(
      absl::StrCat("no conversion between F32 and ", DTypeName(dtype)));
}

// Calls `visit` with a value of the C++ type of an integer or F64 `dtype`.
template <typename Visitor>
bool VisitArithmetic(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::kU8:
      return visit(uint8_t{}), true;
    case DType::kI8:
      return visit(int8_t{}), true;
    case DType::kI16:
      return visit(int16_t{}), true;
    case DType::kU16:
      return visit(uint16_t{}), true;
    case DType::kI32:
      return visit(int32_t{}), true;
    case DType::kU32:
      return visit(uint32_t{}), true;
    case DType::kI64:
      return visit(int64_t{}), true;
    case DType::kU64:
      return visit(uint64_t{}), true;
    case DType::kF64:
      return visit(double{}), true;
    default:
      return false;
  }
}

// Rounds towards the float32 with an odd last bit where `value` is not one, so
// that a later rounding to fewer bits sees which side it came from.
template <typename T>
float RoundToOdd(T value) {
  float rounded = static_cast<float>(value);
  if (!std::isfinite(rounded)) {
    if (!std::is_same_v<T, double>) return rounded;
    if (!std::isfinite(static_cast<double>(value))) return rounded;
    return std::copysign(std::numeric_limits<float>::max(), rounded);
  }
  // 80-bit floats hold every T exactly on x86-64, and quads do elsewhere.
  const long double exact = static_cast<long double>(value);
  const long double found = static_cast<long double>(rounded);
  if (exact == found || (std::bit_cast<uint32_t>(rounded) & 1)) return rounded;
  const float direction = exact > found
                              ? std::numeric_limits<float>::infinity()
                              : -std::numeric_limits<float>::infinity();
  return std::nextafter(rounded, direction);
}

bool IsWiderThanFloat(DType dtype) {
  switch (dtype) {
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Branch-free, so that the compiler makes vectors of it.
float F16ToFloat(uint16_t bits) {
  const uint32_t shifted = uint32_t{bits & 0x7FFFu} << 13;
  // Scaling by 2^112 moves the exponent and makes subnormals normal.
  const float scaled =
      std::bit_cast<float>(shifted) * std::bit_cast<float>(0x77800000u);
  const uint32_t finite = std::bit_cast<uint32_t>(scaled);
  const uint32_t quiet = (bits & 0x7FFFu) > 0x7C00u ? 0x00400000u : 0;
  const uint32_t special = shifted | kFloatInfinity | quiet;
  const uint32_t magnitude = shifted >= 0x0F800000u ? special : finite;
  return std::bit_cast<float>((uint32_t{bits & 0x8000u} << 16) | magnitude);
}

uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & ~kFloatSign) > kFloatInfinity) {  // keeps the payload's top bits
    return static_cast<uint16_t>(((bits >> 16) & 0x8000u) | 0x7E00u |
                                 ((bits >> 13) & 0x3FFu));
  }
  return Encode<F16>(value);
}

float BF16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t FloatToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & ~kFloatSign) > kFloatInfinity;
  return static_cast<uint16_t>(is_nan ? quiet_nan : rounded);
}

absl::Status ConvertToFloat(DType dtype, absl::Span<const std::byte> source,
                            absl::Span<float> target) {
  FF_RETURN_IF_ERROR(CheckSizes(dtype, source.size(), target.size()));
  if (target.empty()) return absl::OkStatus();
  const std::byte* bytes = source.data();
  switch (dtype) {
    case DType::kF32:
      std::memcpy(target.data(), bytes, source.size());
      return absl::OkStatus();
    case DType::kBF16:
      DecodeAll<uint16_t>(bytes, target, BF16ToFloat);
      return absl::OkStatus();
    case DType::kF16:
      DecodeF16(bytes, target);
      return absl::OkStatus();
    case DType::kF8E5M2:
      DecodeByTable<F8E5M2>(bytes, target);
      return absl::OkStatus();
    case DType::kF8E4M3:
      DecodeByTable<F8E4M3>(bytes, target);
      return absl::OkStatus();
    case DType::kF8E4M3Fnuz:
      DecodeByTable<F8E4M3Fnuz>(bytes, target);
      return absl::OkStatus();
    case DType::kF8E5M2Fnuz:
      DecodeByTable<F8E5M2Fnuz>(bytes, target);
      return absl::OkStatus();
    case DType::kF8E8M0:
      DecodeAll<uint8_t>(bytes, target, DecodeE8M0);
      return absl::OkStatus();
    case DType::kBool:
      DecodeAll<uint8_t>(bytes, target,
                         [](uint8_t value) { return value ? 1.0f : 0.0f; });
      return absl::OkStatus();
    case DType::kF4:
      for (size_t i = 0; i < target.size(); ++i) {
        target[i] =
            DecodeF4(static_cast<uint32_t>(bytes[i / 2]) >> (i % 2 ? 4 : 0));
      }
      return absl::OkStatus();
    default:
      break;
  }
  const bool done = VisitArithmetic(dtype, [&](auto zero) {
    using T = decltype(zero);
    DecodeAll<T>(bytes, target,
                 [](T value) { return static_cast<float>(value); });
  });
  return done ? absl::OkStatus() : NoConversion(dtype);
}

absl::Status ConvertFromFloat(absl::Span<const float> source, DType dtype,
                              absl::Span<std::byte> target) {
  FF_RETURN_IF_ERROR(CheckSizes(dtype, target.size(), source.size()));
  if (source.empty()) return absl::OkStatus();
  std::byte* bytes = target.data();
  switch (dtype) {
    case DType::kF32:
      std::memcpy(bytes, source.data(), target.size());
      return absl::OkStatus();
    case DType::kBF16:
      EncodeAll<uint16_t>(source, bytes, FloatToBF16);
      return absl::OkStatus();
    case DType::kF16:
      EncodeF16(source, bytes);
      return absl::OkStatus();
    case DType::kF8E5M2:
      EncodeAll<uint8_t>(source, bytes, Encode<F8E5M2>);
      return absl::OkStatus();
    case DType::kF8E4M3:
      EncodeAll<uint8_t>(source, bytes, Encode<F8E4M3>);
      return absl::OkStatus();
    case DType::kF8E4M3Fnuz:
      EncodeAll<uint8_t>(source, bytes, Encode<F8E4M3Fnuz>);
      return absl::OkStatus();
    case DType::kF8E5M2Fnuz:
      EncodeAll<uint8_t>(source, bytes, Encode<F8E5M2Fnuz>);
      return absl::OkStatus();
    case DType::kF8E8M0:
      EncodeAll<uint8_t>(source, bytes, EncodeE8M0);
      return absl::OkStatus();
    case DType::kBool:
      EncodeAll<uint8_t>(source, bytes, [](float value) -> uint8_t {
        return value != 0.0f ? 1 : 0;
      });
      return absl::OkStatus();
    default:
      break;
  }
  const bool done = VisitArithmetic(dtype, [&](auto zero) {
    using T = decltype(zero);
    EncodeAll<T>(source, bytes, [](float value) -> T {
      if constexpr (std::is_same_v<T, double>) {
        return value;
      } else {
        return FloatToInt<T>(value);
      }
    });
  });
  return done ? absl::OkStatus() : NoConversion(dtype);
}

absl::StatusOr<HostTensor> ConvertTensor(const TensorView& view, DType dtype) {
  if (view.dtype == dtype) return HostTensor::CopyOf(view);
  const bool wide_source = IsWiderThanFloat(view.dtype);
  if (wide_source && (IsWiderThanFloat(dtype) || dtype == DType::kI16 ||
                      dtype == DType::kU16)) {
    return absl::UnimplementedError(absl::StrCat("no conversion from ",
                                                 DTypeName(view.dtype), " to ",
                                                 DTypeName(dtype)));
  }
  FF_ASSIGN_OR_RETURN(
      HostTensor target,
      HostTensor::Create(dtype, view.shape, HostTensor::Fill::kNone));
  FF_RETURN_IF_ERROR(
      CheckSizes(view.dtype, view.bytes.size(), target.num_elements()));
  // Through a block that stays in the first-level cache; even, for F4.
  constexpr int64_t kBlock = 2048;
  float block[kBlock];
  const int64_t count = target.num_elements();
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    const auto source = view.bytes.subspan(begin * DTypeBits(view.dtype) / 8,
                                           size * DTypeBits(view.dtype) / 8);
    const auto floats = absl::MakeSpan(block, size);
    if (wide_source && dtype != DType::kF32) {
      VisitArithmetic(view.dtype, [&](auto zero) {
        using T = decltype(zero);
        DecodeAll<T>(source.data(), floats, RoundToOdd<T>);
      });
    } else {
      FF_RETURN_IF_ERROR(ConvertToFloat(view.dtype, source, floats));
    }
    FF_RETURN_IF_ERROR(ConvertFromFloat(
        floats, dtype,
        target.mutable_bytes().subspan(begin * DTypeBits(dtype) / 8,
                                       size * DTypeBits(dtype) / 8)));
  }
  return target;
}

}  // namespace firstframe
