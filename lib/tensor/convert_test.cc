#include "lib/tensor/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits, bias;
  bool has_infinity, is_fnuz;
};

constexpr Format kFormats[] = {
    {DType::kF16, 5, 10, 15, true, false},
    {DType::kBF16, 8, 7, 127, true, false},
    {DType::kF8E5M2, 5, 2, 15, true, false},
    {DType::kF8E4M3, 4, 3, 7, false, false},
    {DType::kF8E4M3Fnuz, 4, 3, 8, false, true},
    {DType::kF8E5M2Fnuz, 5, 2, 16, false, true},
};

std::string Name(DType dtype) { return std::string(DTypeName(dtype)); }

// The value by its definition, in double, with no bit tricks.
double Expected(const Format& f, uint32_t code) {
  const int bits = 1 + f.exponent_bits + f.mantissa_bits;
  const uint32_t sign = code >> (bits - 1);
  const uint32_t exponent =
      (code >> f.mantissa_bits) & ((1u << f.exponent_bits) - 1);
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const uint32_t top = (1u << f.exponent_bits) - 1;
  if (f.is_fnuz && sign && !exponent && !mantissa) return kNan;
  if (f.has_infinity && exponent == top) {
    return mantissa ? kNan : (sign ? -kInf : kInf);
  }
  if (!f.has_infinity && !f.is_fnuz && exponent == top &&
      mantissa == (1u << f.mantissa_bits) - 1) {
    return kNan;
  }
  const double fraction = std::ldexp(mantissa, -f.mantissa_bits);
  const double value = exponent == 0
                           ? std::ldexp(fraction, 1 - f.bias)
                           : std::ldexp(1 + fraction, exponent - f.bias);
  return sign ? -value : value;
}

std::vector<float> DecodeEveryCode(const Format& f) {
  const int bits = DTypeBits(f.dtype);
  std::vector<std::byte> codes((size_t{1} << bits) * bits / 8);
  for (uint32_t i = 0; i < (1u << bits); ++i) {
    std::memcpy(&codes[i * bits / 8], &i, bits / 8);
  }
  std::vector<float> values(size_t{1} << bits);
  EXPECT_THAT(ConvertToFloat(f.dtype, codes, absl::MakeSpan(values)), IsOk());
  return values;
}

std::vector<uint32_t> Encode(const Format& f, const std::vector<float>& in) {
  const int width = DTypeBits(f.dtype) / 8;
  std::vector<std::byte> bytes(in.size() * width);
  EXPECT_THAT(ConvertFromFloat(in, f.dtype, absl::MakeSpan(bytes)), IsOk());
  std::vector<uint32_t> codes(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    std::memcpy(&codes[i], &bytes[i * width], width);
  }
  return codes;
}

bool SameFloat(float a, double b) {
  if (std::isnan(b)) return std::isnan(a);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(Convert, DecodesEveryCode) {
  for (const Format& f : kFormats) {
    const std::vector<float> values = DecodeEveryCode(f);
    for (uint32_t code = 0; code < values.size(); ++code) {
      ASSERT_TRUE(SameFloat(values[code], Expected(f, code)))
          << Name(f.dtype) << " " << code << ": " << values[code];
    }
  }
}

TEST(Convert, EveryValueSurvivesARoundTrip) {
  for (const Format& f : kFormats) {
    const std::vector<float> values = DecodeEveryCode(f);
    const std::vector<uint32_t> codes = Encode(f, values);
    for (uint32_t code = 0; code < values.size(); ++code) {
      if (std::isnan(values[code])) {
        ASSERT_TRUE(std::isnan(Expected(f, codes[code]))) << Name(f.dtype);
      } else {
        ASSERT_EQ(codes[code], code) << Name(f.dtype);
      }
    }
  }
}

// Encoding is monotone, so these points fix it everywhere: each midpoint of two
// neighbours and the float32 on either side of it.
TEST(Convert, RoundsToNearestEvenBetweenEveryTwoNeighbours) {
  for (const Format& f : kFormats) {
    const uint32_t magnitudes = 1u << (DTypeBits(f.dtype) - 1);
    std::vector<float> in;
    std::vector<uint32_t> expected;
    for (uint32_t code = 0; code + 1 < magnitudes; ++code) {
      const double low = Expected(f, code);
      double high = Expected(f, code + 1);
      if (!std::isfinite(low)) break;
      // Past the largest finite value the grid goes on, for the rounding.
      const bool at_end = !std::isfinite(high);
      if (at_end) high = low + (low - Expected(f, code - 1));
      const float middle = static_cast<float>(low / 2 + high / 2);
      if (middle != low / 2 + high / 2) continue;  // BF16's last subnormals
      const uint32_t above = code + 1;
      in.insert(in.end(), {std::nextafter(middle, 0.0f), middle,
                           std::nextafter(middle, kInf)});
      expected.insert(expected.end(), {code, code % 2 ? above : code, above});
    }
    const size_t count = in.size();
    for (size_t i = 0; i < count; ++i) in.push_back(-in[i]);
    const std::vector<uint32_t> codes = Encode(f, in);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(codes[i], expected[i]) << Name(f.dtype) << " " << in[i];
      const uint32_t negative =
          expected[i] == 0 && f.is_fnuz ? 0 : expected[i] | magnitudes;
      ASSERT_EQ(codes[i + count], negative) << Name(f.dtype) << " " << -in[i];
    }
  }
}

TEST(Convert, OverflowIsInfinityOrNan) {
  for (const Format& f : kFormats) {
    for (const float value : {3e38f, kInf, -3e38f, -kInf}) {
      if (f.dtype == DType::kBF16 && std::isfinite(value)) continue;
      const double back = Expected(f, Encode(f, {value})[0]);
      if (f.has_infinity) {
        EXPECT_EQ(back, value < 0 ? -kInf : kInf) << Name(f.dtype);
      } else {
        EXPECT_TRUE(std::isnan(back)) << Name(f.dtype);
      }
    }
  }
}

TEST(Convert, NanPayloadsStayNan) {
  for (const uint32_t bits : {0x7F800001u, 0xFF800001u, 0x7FFFFFFFu}) {
    const float nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(BF16ToFloat(FloatToBF16(nan))));
    EXPECT_TRUE(std::isnan(F16ToFloat(FloatToF16(nan))));
  }
}

// Spans of 8 and more take the processor's instruction, shorter ones do not.
TEST(Convert, WideAndScalarF16Agree) {
  std::vector<float> in;
  for (uint32_t i = 0; i < (1u << 20); ++i) {
    in.push_back(std::bit_cast<float>(i * 4099u));
  }
  const std::vector<uint32_t> wide = Encode(kFormats[0], in);
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(wide[i], FloatToF16(in[i])) << std::bit_cast<uint32_t>(in[i]);
  }
}

TEST(Convert, E8M0HoldsPowersOfTwo) {
  const Format f = {DType::kF8E8M0, 8, 0, 127, false, false};
  const std::vector<float> values = DecodeEveryCode(f);
  for (int code = 0; code < 255; ++code) {
    ASSERT_EQ(values[code], std::ldexp(1.0, code - 127));
  }
  EXPECT_TRUE(std::isnan(values[255]));
  EXPECT_THAT(Encode(f, {1.0f, -1.0f, 1.49f, 1.5f, 0.0f, kInf, kNan, 3e38f}),
              ElementsAre(127, 127, 127, 128, 0, 255, 255, 255));
}

TEST(Convert, F4TakesTheLowHalfFirst) {
  const std::byte bytes[2] = {std::byte{0xF1}, std::byte{0x72}};
  float values[4];
  ASSERT_THAT(ConvertToFloat(DType::kF4, bytes, absl::MakeSpan(values)),
              IsOk());
  EXPECT_THAT(values, ElementsAre(0.5f, -6.0f, 1.0f, 6.0f));
}

template <typename T>
std::vector<T> FloatsTo(DType dtype, const std::vector<float>& in) {
  std::vector<T> out(in.size());
  EXPECT_THAT(
      ConvertFromFloat(in, dtype,
                       absl::MakeSpan(reinterpret_cast<std::byte*>(out.data()),
                                      out.size() * sizeof(T))),
      IsOk());
  return out;
}

TEST(Convert, IntegersTruncateAndSaturate) {
  const std::vector<float> in = {2.9f, -2.9f, kNan, kInf, -kInf, 1e30f};
  EXPECT_THAT(FloatsTo<int8_t>(DType::kI8, in),
              ElementsAre(2, -2, 0, 127, -128, 127));
  EXPECT_THAT(FloatsTo<uint16_t>(DType::kU16, in),
              ElementsAre(2, 0, 0, 65535, 0, 65535));
  EXPECT_THAT(FloatsTo<int64_t>(DType::kI64, in),
              ElementsAre(2, -2, 0, std::numeric_limits<int64_t>::max(),
                          std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(FloatsTo<uint64_t>(DType::kU64, in),
              ElementsAre(2, 0, 0, std::numeric_limits<uint64_t>::max(), 0,
                          std::numeric_limits<uint64_t>::max()));
  EXPECT_THAT(FloatsTo<uint8_t>(DType::kBool, {0.0f, -0.0f, 0.1f, kNan}),
              ElementsAre(0, 0, 1, 1));
}

TEST(Convert, WideTypesRoundToFloatOnce) {
  const int64_t ints[3] = {(int64_t{1} << 24) + 1, (int64_t{1} << 53) + 1, -5};
  float values[3];
  ASSERT_THAT(ConvertToFloat(DType::kI64,
                             absl::MakeConstSpan(
                                 reinterpret_cast<const std::byte*>(ints), 24),
                             absl::MakeSpan(values)),
              IsOk());
  EXPECT_THAT(values, ElementsAre(16777216.0f, 9007199254740992.0f, -5.0f));
}

// 1 + 2^-8 is halfway between two BF16 values: a bit far below float32's last
// decides, and a rounding to float32 in between would lose it.
TEST(Convert, DoubleToBF16RoundsOnce) {
  const double values[4] = {1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40),
                            1 + std::ldexp(1.0, -8), 1e300, -0.0};
  const TensorView view = {
      DType::kF64,
      {4},
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values), 32)};
  ASSERT_OK_AND_ASSIGN(const HostTensor tensor,
                       ConvertTensor(view, DType::kBF16));
  EXPECT_THAT(tensor.data<uint16_t>(),
              ElementsAre(0x3F81, 0x3F80, 0x7F80, 0x8000));
  EXPECT_THAT(
      ConvertTensor(view, DType::kI64),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("from F64 to I64")));
}

TEST(Convert, TensorsOfManyBlocks) {
  ASSERT_OK_AND_ASSIGN(HostTensor in, HostTensor::Create(DType::kF32, {5001}));
  for (int i = 0; i < 5001; ++i)
    in.mutable_data<float>()[i] = 0.25f * (i % 2048);
  ASSERT_OK_AND_ASSIGN(const HostTensor half,
                       ConvertTensor(in.view(), DType::kF16));
  ASSERT_OK_AND_ASSIGN(const HostTensor back,
                       ConvertTensor(half.view(), DType::kF32));
  for (int i = 0; i < 5001; ++i) {
    ASSERT_EQ(back.data<float>()[i], 0.25f * (i % 2048));
  }
}

TEST(Convert, NamesWhatItCannotDo) {
  float values[4];
  const std::byte bytes[8] = {};
  EXPECT_THAT(ConvertToFloat(DType::kBF16, bytes, absl::MakeSpan(values, 3)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("8 bytes of BF16 are not 3 elements")));
  EXPECT_THAT(ConvertToFloat(DType::kC64, bytes, absl::MakeSpan(values, 1)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("C64")));
  EXPECT_THAT(ConvertToFloat(DType::kF6E2M3, absl::MakeConstSpan(bytes, 3),
                             absl::MakeSpan(values, 4)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("F6_E2M3")));
}

}  // namespace
}  // namespace firstframe
