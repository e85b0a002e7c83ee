// The oneDNN path and the plain loops check each other.
#include "lib/wan_vae/direct_conv.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/cpu_conv.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

std::vector<float> Values(const std::string& name, int64_t count) {
  std::vector<float> values(count);
  FillSynthetic(name, {count}, 0, absl::MakeSpan(values));
  return values;
}

// [rows, channels] to [groups, rows, channels / groups].
std::vector<float> Grouped(const std::vector<float>& values, int64_t channels,
                           int64_t groups) {
  const int64_t rows = static_cast<int64_t>(values.size()) / channels;
  const int64_t width = channels / groups;
  std::vector<float> result(values.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < channels; ++c) {
      result[(c / width * rows + r) * width + c % width] =
          values[r * channels + c];
    }
  }
  return result;
}

struct Case {
  const char* name;
  int64_t in, out;
  std::array<int64_t, 3> kernel, stride;
  std::array<int64_t, 2> padding;
  ConvShape shape;
};

class ConvAgainstLoops : public ::testing::TestWithParam<Case> {};

TEST_P(ConvAgainstLoops, Agrees) {
  const Case& c = GetParam();
  const ConvLayer layer = {.in_channels = c.in,
                           .out_channels = c.out,
                           .kernel = c.kernel,
                           .stride = c.stride,
                           .padding = c.padding};
  ASSERT_OK_AND_ASSIGN(const auto context, DnnlContext::Create());
  const ConvShape& s = c.shape;
  const auto out = ConvOutputShape(layer, s);
  const auto weight =
      Values("w", c.in * c.out * c.kernel[0] * c.kernel[1] * c.kernel[2]);
  const auto bias = Values("b", c.out);
  const auto input =
      Values("x", s.batch * s.frames * s.height * s.width * c.in);
  std::vector<float> expected =
      Values("y", out[0] * out[1] * out[2] * out[3] * out[4]);
  std::vector<float> found = expected;
  DirectConv(layer, s, weight.data(), bias.data(), input.data(),
             expected.data());
  CpuConv conv(layer, *context);
  // A likely shape that is not the one that runs.
  ASSERT_THAT(
      conv.SetWeights(weight.data(), bias.data(),
                      {.batch = 1, .frames = 5, .height = 64, .width = 64}),
      testing::IsOk());
  const auto grouped = Grouped(input, c.in, conv.num_groups());
  ASSERT_THAT(conv.Run(s, grouped.data(), found.data()), testing::IsOk());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    difference += std::pow(found[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  EXPECT_LE(std::sqrt(difference / norm), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvAgainstLoops,
    ::testing::Values(
        Case{"Cube", 16, 32, {3, 3, 3}, {1, 1, 1}, {1, 1}, {1, 6, 5, 7}},
        Case{"CubeOnZeroFrames",
             48,
             16,
             {3, 3, 3},
             {1, 1, 1},
             {1, 1},
             {.batch = 2,
              .frames = 1,
              .height = 4,
              .width = 3,
              .zero_frames = 2}},
        Case{"CubeAccumulating",
             16,
             16,
             {3, 3, 3},
             {1, 1, 1},
             {1, 1},
             {.batch = 1,
              .frames = 3,
              .height = 8,
              .width = 8,
              .accumulate = true}},
        Case{"WideInGroups",
             192,
             32,
             {3, 3, 3},
             {1, 1, 1},
             {1, 1},
             {.batch = 2,
              .frames = 4,
              .height = 5,
              .width = 3,
              .accumulate = true}},
        Case{"WidestInGroups",
             384,
             48,
             {3, 3, 3},
             {1, 1, 1},
             {1, 1},
             {.batch = 1,
              .frames = 1,
              .height = 4,
              .width = 3,
              .zero_frames = 2}},
        Case{"RgbIn", 3, 16, {3, 3, 3}, {1, 1, 1}, {1, 1}, {1, 3, 9, 9}},
        Case{"RgbOut", 96, 3, {3, 3, 3}, {1, 1, 1}, {1, 1}, {1, 3, 9, 9}},
        Case{"OddWidths", 21, 35, {3, 3, 3}, {1, 1, 1}, {1, 1}, {1, 3, 5, 5}},
        Case{"Plane", 32, 16, {1, 3, 3}, {1, 1, 1}, {1, 1}, {2, 4, 6, 6}},
        Case{"Downsample",
             16,
             16,
             {1, 3, 3},
             {1, 2, 2},
             {0, 0},
             {.batch = 1,
              .frames = 4,
              .height = 8,
              .width = 6,
              .zero_after = 1}},
        Case{"Time", 16, 32, {3, 1, 1}, {1, 1, 1}, {0, 0}, {1, 4, 3, 5}},
        Case{"TimeDownsample",
             16,
             16,
             {3, 1, 1},
             {2, 1, 1},
             {0, 0},
             {1, 5, 3, 5}},
        Case{"Pointwise", 32, 48, {1, 1, 1}, {1, 1, 1}, {0, 0}, {2, 3, 3, 5}}),
    [](const auto& info) { return info.param.name; });

// How short the chains are is the processor's (cpu_conv.cc).
TEST(NumInputGroups, BoundsTheLongestSum) {
  ConvLayer layer = {.kernel = {3, 3, 3}};
  for (const int64_t channels : {64, 96, 192, 384, 1024}) {
    layer.in_channels = channels;
    const int64_t groups = NumInputGroups(layer);
    EXPECT_EQ(channels % groups, 0) << channels;
    EXPECT_LE(channels / groups, 64) << channels;
    EXPECT_GE(channels / groups, 8) << channels;
  }
  layer.in_channels = 1021;  // prime: not in groups
  EXPECT_EQ(NumInputGroups(layer), 1);
  layer = {.in_channels = 4096, .kernel = {1, 3, 3}};
  EXPECT_EQ(NumInputGroups(layer), 1);
}

TEST(ConvFlops, CountsTapsOnRealFrames) {
  const ConvLayer layer = {.in_channels = 2,
                           .out_channels = 3,
                           .kernel = {3, 3, 3},
                           .padding = {1, 1}};
  ConvShape shape = {.batch = 1, .frames = 3, .height = 4, .width = 5};
  const int64_t one_tap = 2 * 2 * 3 * 9 * 4 * 5;  // of time
  EXPECT_EQ(ConvFlops(layer, shape), 3 * one_tap);
  shape.frames = 1;
  shape.zero_frames = 2;
  EXPECT_EQ(ConvFlops(layer, shape), one_tap);
}

}  // namespace
}  // namespace firstframe
