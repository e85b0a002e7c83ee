#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/c_api/dlpack_abi.h"
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

// --- phases ---

TEST(Phases, ScopesEndInnermostFirstOnTheirThread) {
  ff_phase_recorder* recorder = nullptr;
  ASSERT_EQ(ff_phase_recorder_create(nullptr, nullptr, &recorder), FF_OK);
  ff_phase_collector* collector = nullptr;
  ASSERT_EQ(ff_phase_collector_open(recorder, "main", &collector), FF_OK);
  ff_phase* outer = nullptr;
  ff_phase* inner = nullptr;
  ASSERT_EQ(ff_phase_begin("outer", &outer), FF_OK);
  ASSERT_EQ(ff_phase_begin("inner", &inner), FF_OK);

  EXPECT_EQ(ff_phase_end(outer, nullptr), FF_FAILED_PRECONDITION);
  EXPECT_THAT(ff_last_error(), HasSubstr("not the innermost"));
  EXPECT_EQ(ff_phase_collector_close(collector), FF_FAILED_PRECONDITION);
  EXPECT_EQ(ff_phase_recorder_destroy(recorder), FF_FAILED_PRECONDITION);
  std::thread([&] {
    EXPECT_EQ(ff_phase_end(inner, nullptr), FF_FAILED_PRECONDITION);
    EXPECT_EQ(ff_phase_set_int(inner, "bytes", 1), FF_FAILED_PRECONDITION);
    ff_phase* elsewhere = outer;
    EXPECT_EQ(ff_phase_begin("elsewhere", &elsewhere), FF_OK);
    EXPECT_EQ(elsewhere, nullptr);  // nothing collects on this thread
  }).join();

  EXPECT_EQ(ff_phase_set_int(inner, "read_bytes", 512), FF_OK);
  EXPECT_EQ(ff_phase_end(inner, "disk on fire"), FF_OK);
  EXPECT_EQ(ff_phase_end(inner, nullptr), FF_FAILED_PRECONDITION);  // twice
  EXPECT_EQ(ff_phase_end(outer, nullptr), FF_OK);
  EXPECT_EQ(ff_phase_collector_close(collector), FF_OK);

  char* json = nullptr;
  ASSERT_EQ(ff_phase_recorder_json(recorder, &json), FF_OK);
  const std::string report = Take(json);
  EXPECT_THAT(report, HasSubstr("\"name\":\"inner\""));
  EXPECT_THAT(report, HasSubstr("disk on fire"));
  EXPECT_THAT(report, HasSubstr("\"read_bytes\":512"));
  EXPECT_EQ(ff_phase_recorder_destroy(recorder), FF_OK);
}

// --- regions ---

std::string profile_dir;

TEST(Regions, GoToATraceInTheFolderAskedFor) {
  const testing::TempDir dir;
  ff_region* region = nullptr;
  ASSERT_EQ(ff_region_begin("training_step", &region), FF_OK);
  EXPECT_EQ(region, nullptr);  // no profiler
  int32_t is_on = 1;
  char* messages = nullptr;
  ASSERT_EQ(
      ff_profiler_start([](const char*) -> const char* { return nullptr; },
                        &is_on, &messages),
      FF_OK);
  EXPECT_EQ(is_on, 0);
  ff_free(messages);

  profile_dir = dir.path();
  const auto get = [](const char* name) -> const char* {
    if (std::strcmp(name, "FASTVIDEO_TORCH_PROFILER_DIR") == 0) {
      return profile_dir.c_str();
    }
    if (std::strcmp(name, "FASTVIDEO_TORCH_PROFILE_REGIONS") == 0) {
      return "profiler_region_training_step,training_stop";
    }
    return nullptr;
  };
  ASSERT_EQ(ff_profiler_start(get, &is_on, &messages), FF_OK)
      << ff_last_error();
  EXPECT_EQ(is_on, 1);
  EXPECT_THAT(Take(messages), HasSubstr("training_stop"));
  ASSERT_EQ(ff_region_begin("profiler_region_training_step", &region), FF_OK);
  ff_region* inner = nullptr;
  ASSERT_EQ(ff_region_begin("training_backward", &inner), FF_OK);
  EXPECT_EQ(ff_region_end(region), FF_FAILED_PRECONDITION);
  EXPECT_EQ(ff_region_end(inner), FF_OK);
  EXPECT_EQ(ff_region_end(region), FF_OK);
  ASSERT_EQ(ff_profiler_stop(&messages), FF_OK);
  EXPECT_THAT(Take(messages), HasSubstr(dir.path()));
}

// --- statistics ---

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

// --- traces ---

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

TEST(Tracer, IsNullWhenOff) {
  const ff_trace_settings settings = {.struct_size = sizeof(settings)};
  auto* tracer = reinterpret_cast<ff_tracer*>(1);
  char* warnings = nullptr;
  ASSERT_EQ(ff_tracer_create(&settings, &tracer, &warnings), FF_OK);
  EXPECT_EQ(tracer, nullptr);
  EXPECT_EQ(ff_tracer_wants(nullptr, nullptr), 0);
}

// --- safetensors ---

std::string WriteCheckpoint(const testing::TempDir& dir) {
  std::string header =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,4],\"data_offsets\":[8,12]}}";
  while (header.size() % 8 != 0) header += ' ';
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += header;
  const float values[] = {1.5f, -2};
  file.append(reinterpret_cast<const char*>(values), sizeof(values));
  file += "wxyz";
  return dir.Write("model.safetensors", file);
}

TEST(Load, TensorsOutliveTheirCheckpoint) {
  const testing::TempDir dir;
  ff_checkpoint* checkpoint = nullptr;
  ASSERT_EQ(ff_load(WriteCheckpoint(dir).c_str(), FF_HOST, &checkpoint), FF_OK)
      << ff_last_error();
  ASSERT_EQ(ff_checkpoint_size(checkpoint), 2u);
  ff_tensor_info info = {.struct_size = sizeof(info)};
  ASSERT_EQ(ff_checkpoint_tensor(checkpoint, 1, &info), FF_OK);
  EXPECT_EQ(std::string(info.name), "b");
  EXPECT_EQ(info.dtype, FF_F8_E4M3);
  EXPECT_EQ(info.shape[1], 4);
  EXPECT_EQ(ff_checkpoint_tensor(checkpoint, 2, &info), FF_OUT_OF_RANGE);

  DLManagedTensor* a = nullptr;
  DLManagedTensor* b = nullptr;
  ASSERT_EQ(ff_checkpoint_dlpack(checkpoint, 0, &a), FF_OK);
  ASSERT_EQ(ff_checkpoint_dlpack(checkpoint, 1, &b), FF_OK);
  ff_checkpoint_release(checkpoint);
  EXPECT_EQ(a->dl_tensor.dtype.code, 2);
  EXPECT_EQ(a->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(static_cast<const float*>(a->dl_tensor.data)[1], -2);
  ff_dlpack_delete(a);
  // A type without a DLPack code comes as bytes.
  EXPECT_EQ(b->dl_tensor.dtype.code, 1);
  EXPECT_EQ(b->dl_tensor.ndim, 1);
  EXPECT_EQ(b->dl_tensor.shape[0], 4);
  EXPECT_EQ(static_cast<const char*>(b->dl_tensor.data)[3], 'z');
  b->deleter(b);
}

TEST(Load, FillsTheCallersMemory) {
  const testing::TempDir dir;
  const std::string path = WriteCheckpoint(dir);
  uint64_t size = 0;
  ASSERT_EQ(ff_load_size(path.c_str(), &size), FF_OK);
  void* const arena = std::aligned_alloc(256, size);
  ff_checkpoint* checkpoint = nullptr;
  EXPECT_EQ(ff_load_into(path.c_str(), FF_HOST, arena, size - 1, &checkpoint),
            FF_INVALID_ARGUMENT);
  ASSERT_EQ(ff_load_into(path.c_str(), FF_HOST, arena, size, &checkpoint),
            FF_OK)
      << ff_last_error();
  EXPECT_EQ(*static_cast<const float*>(arena), 1.5f);
  ff_checkpoint_release(checkpoint);
  std::free(arena);
}

TEST(Load, SaysWhatIsWrongWithAFile) {
  const testing::TempDir dir;
  ff_checkpoint* checkpoint = nullptr;
  EXPECT_EQ(ff_load("/nowhere/x.safetensors", FF_HOST, &checkpoint),
            FF_NOT_FOUND);
  EXPECT_THAT(ff_last_error(), HasSubstr("/nowhere/x.safetensors"));
  EXPECT_EQ(ff_load(dir.Write("x.safetensors", "12345678{").c_str(), FF_HOST,
                    &checkpoint),
            FF_DATA_LOSS);
  EXPECT_EQ(checkpoint, nullptr);
}

// --- offload ---

TEST(Offload, DoesNothingWithoutADevice) {
  int32_t devices = 0;
  ASSERT_EQ(ff_device_count(&devices), FF_OK);
  if (devices > 0) GTEST_SKIP() << "there is a device";
  float values[] = {1, 2};
  const int64_t shape[] = {2};
  ff_tensor_info tensor = {.struct_size = sizeof(tensor),
                           .name = "weight",
                           .shape = shape,
                           .data = values,
                           .dtype = FF_F32,
                           .ndim = 1,
                           .size_bytes = 8,
                           .device = FF_HOST};
  ff_offload* offload = nullptr;
  ASSERT_EQ(ff_offload_create(&tensor, 1, &offload), FF_OK) << ff_last_error();
  EXPECT_EQ(ff_offload_load(offload, 0, nullptr), FF_OK) << ff_last_error();
  EXPECT_EQ(ff_offload_unload(offload, nullptr), FF_OK);
  void* data = nullptr;
  int32_t device = 0;
  ASSERT_EQ(ff_offload_place(offload, 0, &data, &device), FF_OK);
  EXPECT_EQ(data, values);
  EXPECT_EQ(device, FF_HOST);
  EXPECT_EQ(ff_offload_place(offload, 1, &data, &device), FF_OUT_OF_RANGE);
  ff_offload_destroy(offload);

  tensor.size_bytes = 9;
  EXPECT_EQ(ff_offload_create(&tensor, 1, &offload), FF_INVALID_ARGUMENT);
  EXPECT_THAT(ff_last_error(), HasSubstr("size_bytes is 9"));
}

// --- models ---

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

// --- requests and training ---

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
