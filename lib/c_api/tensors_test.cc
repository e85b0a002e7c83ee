// Statistics of host tensors, and activation traces.

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/c_api/firstframe.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

std::string Take(char* text) {
  const std::string copy = text == nullptr ? "" : text;
  ff_free(text);
  return copy;
}

ff_tensor Float32(const void* data, const std::vector<int64_t>& shape) {
  return {.struct_size = sizeof(ff_tensor),
          .data = data,
          .dtype = FF_F32,
          .ndim = static_cast<int32_t>(shape.size()),
          .shape = shape.data(),
          .device = FF_HOST};
}

TEST(Stats, ReadsStridesAsPyTorchMeansThem) {
  // The transpose of [2, 3]: shape [3, 2], strides [1, 3].
  const float data[] = {1, 2, 3, 4, 5, std::nanf("")};
  const std::vector<int64_t> shape = {3, 2};
  const std::vector<int64_t> strides = {1, 3};
  ff_tensor tensor = Float32(data, shape);
  tensor.strides = strides.data();
  ff_stats stats = {.struct_size = sizeof(ff_stats)};
  ASSERT_EQ(ff_stats_compute(&tensor, FF_STATS_HASHES, &stats), FF_OK);
  EXPECT_EQ(stats.numel, 6);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.sum, 15);
  EXPECT_EQ(stats.amax_index, 3);  // 1 4 2 5 3 nan
  EXPECT_TRUE(std::isnan(stats.torch_sum));

  const float dense[] = {1, 4, 2, 5, 3, std::nanf("")};
  ff_tensor copy = Float32(dense, shape);
  ff_stats same = {.struct_size = sizeof(ff_stats)};
  ASSERT_EQ(ff_stats_compute(&copy, FF_STATS_HASHES, &same), FF_OK);
  EXPECT_EQ(stats.h_pos, same.h_pos);
  EXPECT_EQ(std::memcmp(&stats.sum, &same.sum, sizeof(double)), 0);
}

TEST(Stats, RefusesWhatIsNoTensor) {
  const float data[] = {1};
  ff_stats stats = {.struct_size = sizeof(ff_stats)};
  const auto refused = [&](const ff_tensor& tensor) {
    EXPECT_EQ(ff_stats_compute(&tensor, 0, &stats), FF_INVALID_ARGUMENT);
    return std::string(ff_last_error());
  };
  const std::vector<int64_t> one = {1};
  ff_tensor tensor = Float32(nullptr, one);
  EXPECT_THAT(refused(tensor), HasSubstr("data is NULL"));
  const std::vector<int64_t> huge = {int64_t{1} << 62, 4};
  tensor = Float32(data, huge);
  EXPECT_THAT(refused(tensor), HasSubstr("4611686018427387904"));
  const std::vector<int64_t> negative = {-1};
  tensor = Float32(data, negative);
  EXPECT_THAT(refused(tensor), HasSubstr("[-1]"));
  tensor = Float32(data, one);
  tensor.ndim = 1000;
  EXPECT_THAT(refused(tensor), HasSubstr("ndim is 1000"));
  tensor = Float32(data, one);
  tensor.struct_size = 8;
  EXPECT_THAT(refused(tensor), HasSubstr("struct_size is 8"));
  EXPECT_EQ(ff_stats_compute(nullptr, 0, &stats), FF_INVALID_ARGUMENT);
}

TEST(Tracer, WritesFastVideosRecords) {
  const testing::TempDir dir;
  const std::string path = dir.File("trace.jsonl");
  const ff_trace_settings settings = {.struct_size = sizeof(settings),
                                      .activations = "1",
                                      .stats = "abs_mean,sum,shape,nonsense",
                                      .output = path.c_str(),
                                      .steps = "3"};
  ff_tracer* tracer = nullptr;
  char* warnings = nullptr;
  ASSERT_EQ(ff_tracer_create(&settings, &tracer, &warnings), FF_OK);
  EXPECT_THAT(Take(warnings), HasSubstr("nonsense"));
  const float data[] = {1, -2, 3};
  const std::vector<int64_t> shape = {3};
  const ff_tensor tensor = Float32(data, shape);
  const int64_t wanted = 3;
  const int64_t unwanted = 4;
  EXPECT_FALSE(ff_tracer_wants(tracer, nullptr));
  EXPECT_EQ(ff_tracer_record(tracer, "a", "out", &unwanted, &tensor), FF_OK);
  EXPECT_EQ(ff_tracer_record(tracer, "b", "out[0]", &wanted, &tensor), FF_OK);
  ff_tracer_destroy(tracer);
  EXPECT_EQ(testing::ReadFile(path),
            "{\"module\": \"b\", \"tensor\": \"out[0]\", \"step\": 3, "
            "\"abs_mean\": 2.0, \"sum\": 2.0, \"shape\": [3]}\n");
}

TEST(Tracer, ReadsDenseTensorsAsTheyLieUnlessOrderMatters) {
  // [2, 3] as it lies in memory; read as [3, 2] with strides [1, 3].
  const float data[] = {1, 9, 2, 3, -9, 5};
  const std::vector<int64_t> shape = {3, 2};
  const std::vector<int64_t> strides = {1, 3};
  const std::vector<int64_t> gap = {1, 4};
  const auto trace = [&](const char* stats, const float* from,
                         const std::vector<int64_t>& steps) {
    const testing::TempDir dir;
    const std::string path = dir.File("trace.jsonl");
    const ff_trace_settings settings = {.struct_size = sizeof(settings),
                                        .activations = "1",
                                        .stats = stats,
                                        .output = path.c_str()};
    ff_tracer* tracer = nullptr;
    char* warnings = nullptr;
    EXPECT_EQ(ff_tracer_create(&settings, &tracer, &warnings), FF_OK);
    ff_tensor tensor = Float32(from, shape);
    tensor.strides = steps.data();
    EXPECT_EQ(ff_tracer_record(tracer, "m", "out", nullptr, &tensor), FF_OK);
    ff_tracer_destroy(tracer);
    return testing::ReadFile(path);
  };
  EXPECT_THAT(trace("sum,shape", data, strides),
              HasSubstr("\"sum\": 11.0, \"shape\": [3, 2]"));
  // 1 3 9 -9 2 5: the first of the largest is at 2, in memory it is at 1.
  EXPECT_THAT(trace("amax_idx", data, strides), HasSubstr("\"amax_idx\": 2}"));
  const float wide[] = {1, 2, 3, 100, 4, 5, 6};
  EXPECT_THAT(trace("sum", wide, gap), HasSubstr("\"sum\": 21.0}"));
}

TEST(Tracer, IsNullWhenOff) {
  const ff_trace_settings settings = {.struct_size = sizeof(settings)};
  auto* tracer = reinterpret_cast<ff_tracer*>(1);
  char* warnings = nullptr;
  ASSERT_EQ(ff_tracer_create(&settings, &tracer, &warnings), FF_OK);
  EXPECT_EQ(tracer, nullptr);
  EXPECT_EQ(ff_tracer_wants(nullptr, nullptr), 0);
}

}  // namespace
}  // namespace firstframe
