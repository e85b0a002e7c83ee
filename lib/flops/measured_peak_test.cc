#include "lib/flops/measured_peak.h"

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/flops/measured_peak_text.h"
#include "lib/tensor/convert.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::StatusIs;

constexpr int64_t kSize = 64;
constexpr int64_t kProductNs = 1000;
constexpr double kProductTflops =
    2.0 * kSize * kSize * kSize / kProductNs / 1e3;

// Multiplies on the host and lets the device's clock go on.
class FakeProduct : public MatrixProduct {
 public:
  FakeProduct(MathType math, float scale, testing::FakeCuda& cuda)
      : types_(ProductTypesOf(math)), scale_(scale), cuda_(cuda) {}

  absl::Status Enqueue(const void* left, const void* right,
                       void* out) override {
    const std::vector<float> a = Floats(left);
    const std::vector<float> b = Floats(right);
    std::vector<float> c(kSize * kSize);
    for (int64_t i = 0; i < kSize; ++i) {
      for (int64_t j = 0; j < kSize; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < kSize; ++k) {
          sum += a[i * kSize + k] * b[j * kSize + k];
        }
        c[j * kSize + i] = sum * scale_;
      }
    }
    cuda_.AdvanceNs(kProductNs);
    const size_t bytes = c.size() * DTypeBits(types_.out) / 8;
    return ConvertFromFloat(
        c, types_.out, absl::MakeSpan(static_cast<std::byte*>(out), bytes));
  }

 private:
  std::vector<float> Floats(const void* matrix) const {
    std::vector<float> values(kSize * kSize);
    const size_t bytes = values.size() * DTypeBits(types_.in) / 8;
    const absl::Status status = ConvertToFloat(
        types_.in, absl::MakeSpan(static_cast<const std::byte*>(matrix), bytes),
        absl::MakeSpan(values));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  const ProductTypes types_;
  const float scale_;
  testing::FakeCuda& cuda_;
};

class MeasuredPeakTest : public ::testing::Test {
 protected:
  MeasureDevice Device(float scale = 1) {
    MeasureDevice device{.runtime = cuda_};
    device.create_product = [this, scale](MathType math, int64_t,
                                          const cuda::Stream&)
        -> absl::StatusOr<std::unique_ptr<MatrixProduct>> {
      if (math == MathType::kFp8) return absl::UnavailableError("too old");
      return std::make_unique<FakeProduct>(math, scale, cuda_);
    };
    return device;
  }
  static MeasureOptions Small() {
    return {.size = kSize, .rounds = 3, .products = 2, .sustained_s = 1e-5};
  }

  testing::FakeCuda cuda_;
};

TEST_F(MeasuredPeakTest, RatesOfEachArithmeticAndTheReasonForNone) {
  const auto peak = MeasurePeak(Device(), Small());
  ASSERT_TRUE(peak.ok()) << peak.status();
  ASSERT_EQ(peak->rates.size(), 5u);
  for (int i = 0; i < 4; ++i) {
    const MeasuredRate& rate = peak->rates[i];
    EXPECT_EQ(rate.samples_tflops.size(), 3u);
    EXPECT_DOUBLE_EQ(rate.best_tflops, kProductTflops);
    EXPECT_DOUBLE_EQ(rate.median_tflops, kProductTflops);
    EXPECT_DOUBLE_EQ(rate.sustained_tflops.value_or(0), kProductTflops);
    EXPECT_LT(rate.largest_error, 0.02);
  }
  EXPECT_EQ(peak->rates[4].unavailable_reason, "too old");
  EXPECT_DOUBLE_EQ(peak->event_s, 4 * 3 * 2 * kProductNs / 1e9);
  EXPECT_EQ(cuda_.live_bytes(), 0);
  EXPECT_EQ(cuda_.live_handles(), 0);
}

TEST_F(MeasuredPeakTest, ReadsTheStateInTheSustainedPart) {
  MeasureDevice device = Device();
  device.read_state = [] { return DeviceState{.power_w = 690}; };
  MeasureOptions options = Small();
  options.math = {MathType::kBf16};
  const auto peak = MeasurePeak(device, options);
  ASSERT_TRUE(peak.ok()) << peak.status();
  ASSERT_TRUE(peak->rates[0].state.has_value());
  EXPECT_EQ(peak->rates[0].state->power_w, 690);
}

TEST_F(MeasuredPeakTest, AWrongProductIsNoRate) {
  const auto peak = MeasurePeak(Device(/*scale=*/-1), Small());
  EXPECT_THAT(peak.status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("fp32 product: element [5, 3] is ")));
  EXPECT_EQ(cuda_.live_bytes(), 0);
}

TEST_F(MeasuredPeakTest, RefusesOptionsOutOfRange) {
  for (const MeasureOptions& options :
       {MeasureOptions{.size = 8}, MeasureOptions{.size = 100},
        MeasureOptions{.size = 65536}, MeasureOptions{.rounds = 0},
        MeasureOptions{.products = 0}, MeasureOptions{.sustained_s = -1}}) {
    EXPECT_THAT(
        MeasurePeak(Device(), options).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected")));
  }
}

TEST(ClockReasons, NamesWhatHoldsADeviceBack) {
  EXPECT_TRUE(ClockReasonNames(0).empty());
  EXPECT_TRUE(ClockReasonNames(1).empty());  // idle
  EXPECT_THAT(ClockReasonNames(0x4 | 0x40),
              ::testing::ElementsAre("power cap", "heat (hardware)"));
  EXPECT_THAT(ClockReasonNames(0x1000),
              ::testing::ElementsAre("reason 0x1000"));
}

MeasuredPeak H200(double bf16_tflops) {
  MeasuredPeak peak;
  peak.device_name = "NVIDIA H200";
  peak.size = 8192;
  MeasuredRate rate;
  rate.math = MathType::kBf16;
  rate.samples_tflops = {bf16_tflops};
  rate.best_tflops = rate.median_tflops = bf16_tflops;
  rate.state = DeviceState{.sm_clock_mhz = 1500,
                           .power_limit_w = 700,
                           .default_power_limit_w = 700,
                           .clock_reasons = 4};
  peak.rates.push_back(rate);
  return peak;
}

std::string Text(const MeasuredPeak& peak) {
  std::ostringstream out;
  WriteMeasuredPeakText(peak, BuiltinDevicePeaks(), out);
  return out.str();
}

TEST(MeasuredPeakText, StandsBesideTheDatasheet) {
  const std::string text = Text(H200(791.2));
  EXPECT_THAT(text, HasSubstr("bf16      791.2    791.2         -     989.0"));
  EXPECT_THAT(text, HasSubstr(" 80.0% "));
  EXPECT_THAT(text, HasSubstr("1500      -  power cap\n"));
  EXPECT_THAT(text, Not(HasSubstr("note:")));
}

TEST(MeasuredPeakText, FlagsMoreThanTheDatasheet) {
  const MeasuredPeak peak = H200(1088);
  EXPECT_THAT(Text(peak), HasSubstr("110.0% (!)"));
  EXPECT_THAT(Text(peak),
              HasSubstr("note: bf16 is over 100% of the datasheet"));
  std::string json_text;
  JsonWriter json(&json_text);
  json.BeginObject();
  WriteMeasuredPeakJson(peak, BuiltinDevicePeaks(), json);
  json.EndObject();
  EXPECT_THAT(json_text, HasSubstr("\"best_tflops\":1088,"));  // not clamped
  EXPECT_THAT(json_text, HasSubstr("\"above_datasheet\":true"));
}

TEST(MeasuredPeakText, SaysWhatAMigSliceIs) {
  MeasuredPeak peak = H200(120);
  peak.device_name = "NVIDIA H200 MIG 1g.18gb";
  const std::string text = Text(peak);
  EXPECT_THAT(text, HasSubstr("note: no datasheet rate: no peak for device "
                              "'NVIDIA H200 MIG 1g.18gb': a MIG slice has a "
                              "share of its board's peak\n"));
  EXPECT_THAT(text, HasSubstr("note: MIG is on: "));
}

TEST(MeasuredPeakText, SaysThatThePowerLimitWasLowered) {
  MeasuredPeak peak = H200(600);
  peak.rates[0].state->power_limit_w = 500;
  EXPECT_THAT(Text(peak),
              HasSubstr("note: the power limit is 500 W, the board's own 700 "
                        "W\n"));
}

TEST(MeasuredPeakText, SaysWhyThereIsNoRateOrState) {
  MeasuredPeak peak = H200(600);
  peak.rates[0].unavailable_reason = "too old";
  peak.rates[0].state.reset();
  peak.state_reason = "no NVML";
  EXPECT_THAT(Text(peak), HasSubstr("note: bf16: too old\n"));
  EXPECT_THAT(Text(peak),
              HasSubstr("note: clocks and power are unknown: no NVML\n"));
}

}  // namespace
}  // namespace firstframe
