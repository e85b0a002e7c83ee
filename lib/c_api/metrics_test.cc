// FLOP models, requests and training windows.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/c_api/firstframe.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

TEST(Models, PriceAPublishedOne) {
  ff_model* model = nullptr;
  ASSERT_EQ(ff_model_open("wan2.1-t2v-14b", &model), FF_OK) << ff_last_error();
  double flops = 0;
  EXPECT_EQ(ff_model_forward_flops(model, 1, 81, 480, 832, &flops), FF_OK);
  EXPECT_GT(flops, 1e15);
  EXPECT_LT(flops, 2e15);
  double forward = 0;
  double attention = 0;
  EXPECT_EQ(ff_model_compat_flops(model, 32760, &forward, &attention), FF_OK);
  EXPECT_NEAR(forward / flops, 1, 0.1);
  ff_model_release(model);
  EXPECT_EQ(ff_model_open("wan2.1-t2v-41b", &model), FF_NOT_FOUND);
}

TEST(Models, ReadLayouts) {
  const char* const names[] = {"x.to_q.weight", "x.to_k.weight",
                               "x.to_v.weight"};
  const int32_t ndims[] = {2, 2, 2};
  const int64_t dims[] = {8, 4, 8, 4, 8, 4};
  ff_model* model = nullptr;
  ASSERT_EQ(ff_model_from_layout(names, ndims, dims, 3, 0, &model), FF_OK)
      << ff_last_error();
  double forward = 0;
  double attention = 0;
  EXPECT_EQ(ff_model_compat_flops(model, 10, &forward, &attention), FF_OK);
  EXPECT_EQ(attention, 4.0 * 10 * 10 * 8);
  EXPECT_EQ(forward, 2.0 * 96 * 10 + attention);
  double flops = 0;
  EXPECT_EQ(ff_model_forward_flops(model, 1, 81, 480, 832, &flops),
            FF_UNIMPLEMENTED);
  ff_model_release(model);
}

TEST(Models, FromSizesAlone) {
  ff_model* model = nullptr;
  ASSERT_EQ(ff_model_from_sizes(1000, 16, 8, 3, 5, &model), FF_OK)
      << ff_last_error();
  int64_t params = 0;
  EXPECT_EQ(ff_model_params(model, &params), FF_OK);
  EXPECT_EQ(params, 1000);
  double forward = 0;
  double attention = 0;
  EXPECT_EQ(ff_model_compat_flops(model, 10, &forward, &attention), FF_OK);
  EXPECT_EQ(attention, 4.0 * 10 * 10 * 16 + 4.0 * 10 * 5 * 8);
  EXPECT_EQ(forward, 2.0 * 1000 * 10 + attention);
  ff_model_release(model);
  EXPECT_EQ(ff_model_from_sizes(1, -1, 0, 0, 0, &model), FF_INVALID_ARGUMENT);
  EXPECT_THAT(ff_last_error(), HasSubstr("self_width is -1"));
}

std::string json_path;

const char* Environment(const char* name) {
  if (std::strcmp(name, "VIDEOX_PERF") == 0) return "1";
  if (std::strcmp(name, "VIDEOX_PERF_EVERY") == 0) return "2";
  if (std::strcmp(name, "VIDEOX_PERF_JSON") == 0) return json_path.c_str();
  return nullptr;
}

ff_perf_options Options() {
  return {.struct_size = sizeof(ff_perf_options),
          .get = Environment,
          .device = FF_HOST};
}

TEST(Perf, IsNullWhenOff) {
  ff_perf_options options = Options();
  options.get = [](const char*) -> const char* { return nullptr; };
  auto* perf = reinterpret_cast<ff_perf*>(1);
  ASSERT_EQ(ff_perf_create(&options, &perf), FF_OK);
  EXPECT_EQ(perf, nullptr);
}

TEST(Perf, RecordsRequests) {
  const testing::TempDir dir;
  json_path = dir.File("perf.jsonl");
  const ff_perf_options options = Options();
  ff_perf* perf = nullptr;
  ASSERT_EQ(ff_perf_create(&options, &perf), FF_OK);
  ff_stage* stage = nullptr;
  ASSERT_EQ(ff_stage_begin("vae_dec", &stage), FF_OK);
  EXPECT_EQ(stage, nullptr);  // no request
  ff_request* request = nullptr;
  ASSERT_EQ(ff_request_begin(perf, &request), FF_OK);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ff_stage_begin("transformer", &stage), FF_OK);
    EXPECT_EQ(ff_request_end(request), FF_FAILED_PRECONDITION);
    EXPECT_EQ(ff_stage_end(stage, 100, 2), FF_OK);
  }
  EXPECT_EQ(ff_request_end(request), FF_OK);
  ff_perf_destroy(perf);
  const std::string record = testing::ReadFile(json_path);
  EXPECT_THAT(record, HasSubstr("\"kind\""));
  EXPECT_THAT(record, HasSubstr("\"transformer\""));
  EXPECT_THAT(record, ::testing::ContainsRegex("\"count\": ?3"));
}

TEST(Perf, RequestsOfThreadsDoNotMeet) {
  const testing::TempDir dir;
  json_path = dir.File("threads.jsonl");
  const ff_perf_options options = Options();
  ff_perf* perf = nullptr;
  ASSERT_EQ(ff_perf_create(&options, &perf), FF_OK);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        ff_request* request = nullptr;
        if (ff_request_begin(perf, &request) != FF_OK) ++failures;
        for (int call = 0; call < t; ++call) {
          ff_stage* stage = nullptr;
          if (ff_stage_begin("vae_dec", &stage) != FF_OK) ++failures;
          if (ff_stage_end(stage, 0, 0) != FF_OK) ++failures;
        }
        if (ff_request_end(request) != FF_OK) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ff_perf_destroy(perf);
  EXPECT_EQ(failures, 0);
  const std::string records = testing::ReadFile(json_path);
  EXPECT_EQ(std::count(records.begin(), records.end(), '\n'), 200);
  for (int t = 1; t <= 4; ++t) {
    const std::string count = "\"count\":" + std::to_string(t) + ",";
    int found = 0;
    for (size_t at = records.find(count); at != std::string::npos;
         at = records.find(count, at + 1)) {
      ++found;
    }
    EXPECT_EQ(found, 50) << count;
  }
}

TEST(Perf, RecordsTrainingWindows) {
  const testing::TempDir dir;
  json_path = dir.File("train.jsonl");
  const ff_perf_options options = Options();
  ff_perf* perf = nullptr;
  ASSERT_EQ(ff_perf_create(&options, &perf), FF_OK);
  const int optimizer = 0;
  for (int i = 0; i < 5; ++i) {
    ff_train_scope* micro = nullptr;
    ff_train_scope* scope = nullptr;
    ASSERT_EQ(ff_train_micro_begin(perf, &micro), FF_OK);
    ASSERT_EQ(ff_train_phase_begin(perf, FF_TRAIN_FORWARD, &scope), FF_OK);
    EXPECT_EQ(ff_train_end(scope, 10, 1), FF_OK);
    ASSERT_EQ(ff_train_optimizer_begin(perf, &optimizer, 1, &scope), FF_OK);
    EXPECT_EQ(ff_train_end(scope, 0, 0), FF_OK);
    EXPECT_EQ(ff_train_end(micro, 0, 0), FF_OK);
  }
  ff_train_scope* scope = nullptr;
  EXPECT_EQ(ff_train_phase_begin(perf, 77, &scope), FF_INVALID_ARGUMENT);
  ff_perf_destroy(perf);
  const std::string records = testing::ReadFile(json_path);
  EXPECT_EQ(std::count(records.begin(), records.end(), '\n'), 3);
  EXPECT_THAT(records, HasSubstr("\"train_window\""));
}

}  // namespace
}  // namespace firstframe
