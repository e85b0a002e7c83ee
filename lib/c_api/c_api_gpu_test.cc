// The C ABI on a device: what a host tensor gives is what a device tensor
// gives.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/c_api/dlpack_abi.h"
#include "lib/c_api/firstframe.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

class CApiGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int32_t devices = 0;
    ASSERT_EQ(ff_device_count(&devices), FF_OK);
    if (devices == 0) GTEST_SKIP() << "no device";
    stream_.emplace(*cuda::Stream::Create());
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = static_cast<float>(i % 1000) - 300;
    }
    buffer_ = *cuda::DeviceBuffer::Allocate(values_.size() * sizeof(float));
    ASSERT_TRUE(stream_
                    ->CopyAsync(buffer_.data(), values_.data(),
                                values_.size() * sizeof(float))
                    .ok());
  }

  ff_tensor OnHost() const {
    return {.struct_size = sizeof(ff_tensor),
            .data = values_.data(),
            .dtype = FF_F32,
            .ndim = 2,
            .shape = shape_,
            .device = FF_HOST};
  }
  ff_tensor OnDevice() const {
    ff_tensor tensor = OnHost();
    tensor.data = buffer_.data();
    tensor.device = 0;
    tensor.stream = stream_->handle();
    return tensor;
  }

  const int64_t shape_[2] = {100, 3000};
  std::vector<float> values_ = std::vector<float>(300'000);
  std::optional<cuda::Stream> stream_;
  cuda::DeviceBuffer buffer_;
};

TEST_F(CApiGpuTest, StatisticsAreTheHosts) {
  ff_stats host = {.struct_size = sizeof(host)};
  ff_stats device = {.struct_size = sizeof(device)};
  const ff_tensor on_host = OnHost();
  const ff_tensor on_device = OnDevice();
  ASSERT_EQ(ff_stats_compute(&on_host, FF_STATS_HASHES, &host), FF_OK);
  ASSERT_EQ(ff_stats_compute(&on_device, FF_STATS_HASHES, &device), FF_OK)
      << ff_last_error();
  EXPECT_EQ(device.sum, host.sum);
  EXPECT_EQ(device.h_pos, host.h_pos);
  EXPECT_EQ(device.amax_index, host.amax_index);
  EXPECT_EQ(device.torch_min, host.torch_min);
}

TEST_F(CApiGpuTest, StridesAreReadAsOnTheHost) {
  struct Case {
    std::vector<int64_t> shape, strides;
    int32_t dtype = FF_F32;
    int64_t offset = 0;  // in elements
  };
  const Case cases[] = {
      {{3000, 100}, {1, 3000}},                  // a transpose
      {{10, 30, 20, 50}, {30000, 1, 1500, 30}},  // channels last
      {{100, 1000}, {3000, 3}},                  // every third
      {{7, 3000}, {0, 1}},                       // repeated
      {{300'000}, {-1}, FF_F32, 299'999},        // backwards
      {{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},     // no two join
       {1, 4, 16, 64, 256, 1024, 4096, 2, 8, 32, 128, 512}},
      {{1000, 300}, {2, 2000}, FF_BF16},
      {{1000, 300}, {1, 1000}, FF_F8_E4M3},
      {{100, 1000}, {1, 100}, FF_F64},
      {{0, 5}, {1, 7}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.shape));
    ff_tensor tensors[] = {OnHost(), OnDevice()};
    ff_stats stats[2];
    for (int i = 0; i < 2; ++i) {
      tensors[i].dtype = c.dtype;
      tensors[i].ndim = static_cast<int32_t>(c.shape.size());
      tensors[i].shape = c.shape.data();
      tensors[i].strides = c.strides.data();
      tensors[i].data = static_cast<const float*>(tensors[i].data) + c.offset;
      stats[i].struct_size = sizeof(ff_stats);
      ASSERT_EQ(ff_stats_compute(&tensors[i], FF_STATS_HASHES, &stats[i]),
                FF_OK)
          << ff_last_error();
    }
    EXPECT_EQ(stats[1].numel, stats[0].numel);
    EXPECT_EQ(stats[1].nan, stats[0].nan);
    EXPECT_EQ(stats[1].h_pos, stats[0].h_pos);
    EXPECT_EQ(stats[1].h_set, stats[0].h_set);
    EXPECT_EQ(stats[1].amax_index, stats[0].amax_index);
  }
}

TEST_F(CApiGpuTest, TracesKeepTheOrderOfTheCalls) {
  const testing::TempDir dir;
  const std::string path = dir.File("trace.jsonl");
  const ff_trace_settings settings = {.struct_size = sizeof(settings),
                                      .activations = "1",
                                      .stats = "sum,max",
                                      .output = path.c_str()};
  ff_tracer* tracer = nullptr;
  char* warnings = nullptr;
  ASSERT_EQ(ff_tracer_create(&settings, &tracer, &warnings), FF_OK);
  const ff_tensor on_host = OnHost();
  const ff_tensor on_device = OnDevice();
  std::string expected;
  for (int i = 0; i < 3000; ++i) {  // more than are kept waiting
    const std::string name = std::to_string(i);
    const ff_tensor& tensor = i % 3 == 0 ? on_host : on_device;
    ASSERT_EQ(ff_tracer_record(tracer, name.c_str(), "out", nullptr, &tensor),
              FF_OK)
        << ff_last_error();
    expected += "{\"module\": \"" + name +
                "\", \"tensor\": \"out\", \"step\": null, \"sum\": "
                "59850000.0, \"max\": 699.0}\n";
  }
  ff_tracer_destroy(tracer);
  EXPECT_EQ(testing::ReadFile(path), expected);
}

std::string json_path;

const char* PerfVariables(const char* name) {
  const std::string wanted = name;
  if (wanted == "VIDEOX_PERF") return "1";
  if (wanted == "VIDEOX_PERF_JSON") return json_path.c_str();
  return nullptr;
}

TEST_F(CApiGpuTest, RequestsFollowTheStreamInUse) {
  const testing::TempDir dir;
  json_path = dir.File("perf.jsonl");
  struct InUse {
    void* stream;
    int asked = 0;
  } in_use = {stream_->handle()};
  const ff_perf_options options = {.struct_size = sizeof(options),
                                   .get = PerfVariables,
                                   .device = 0,
                                   .argument = &in_use,
                                   .current_stream = [](void* argument) {
                                     auto* const asked =
                                         static_cast<InUse*>(argument);
                                     ++asked->asked;
                                     return asked->stream;
                                   }};
  ff_perf* perf = nullptr;
  ASSERT_EQ(ff_perf_create(&options, &perf), FF_OK) << ff_last_error();
  ff_request* request = nullptr;
  ff_stage* stage = nullptr;
  ASSERT_EQ(ff_request_begin(perf, &request), FF_OK);
  ASSERT_EQ(ff_stage_begin("copy", &stage), FF_OK);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stream_
                    ->CopyAsync(buffer_.data(), values_.data(),
                                values_.size() * sizeof(float))
                    .ok());
  }
  EXPECT_EQ(ff_stage_end(stage, 0, 0), FF_OK);
  EXPECT_EQ(ff_request_end(request), FF_OK);
  ff_perf_destroy(perf);
  EXPECT_EQ(in_use.asked, 2);
  const std::string record = testing::ReadFile(json_path);
  EXPECT_THAT(record, ::testing::HasSubstr("\"copy\":{\"count\":1"));
  EXPECT_THAT(record, ::testing::HasSubstr("\"device\":\"cuda:0\""));
}

TEST_F(CApiGpuTest, LoadsShareDeviceMemory) {
  const testing::TempDir dir;
  std::string header =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  while (header.size() % 8 != 0) header += ' ';
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += header;
  const float values[] = {1.5f, -2};
  file.append(reinterpret_cast<const char*>(values), sizeof(values));
  const std::string path = dir.Write("model.safetensors", file);
  for (int load = 0; load < 2;
       ++load) {  // the second has the ring of the first
    ff_checkpoint* checkpoint = nullptr;
    ASSERT_EQ(ff_load(path.c_str(), 0, &checkpoint), FF_OK) << ff_last_error();
    DLManagedTensor* shared = nullptr;
    ASSERT_EQ(ff_checkpoint_dlpack(checkpoint, 0, &shared), FF_OK);
    ff_checkpoint_release(checkpoint);
    EXPECT_EQ(shared->dl_tensor.device.device_type, 2);
    float back[2] = {};
    ASSERT_TRUE(
        stream_->CopyAsync(back, shared->dl_tensor.data, sizeof(back)).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
    EXPECT_EQ(back[1], -2);
    ff_dlpack_delete(shared);
  }
}

TEST_F(CApiGpuTest, OffloadMovesPlacesAndKeepsValues) {
  ff_tensor_info tensor = {.struct_size = sizeof(tensor),
                           .name = "weight",
                           .shape = shape_,
                           .data = values_.data(),
                           .dtype = FF_F32,
                           .ndim = 2,
                           .size_bytes = values_.size() * sizeof(float),
                           .device = FF_HOST};
  ff_offload* offload = nullptr;
  ASSERT_EQ(ff_offload_create(&tensor, 1, &offload), FF_OK) << ff_last_error();
  for (int cycle = 0; cycle < 3; ++cycle) {
    void* data = nullptr;
    int32_t device = FF_HOST;
    ASSERT_EQ(ff_offload_load(offload, 0, stream_->handle()), FF_OK)
        << ff_last_error();
    ASSERT_EQ(ff_offload_place(offload, 0, &data, &device), FF_OK);
    EXPECT_EQ(device, 0);
    std::vector<float> back(values_.size());
    ASSERT_TRUE(
        stream_->CopyAsync(back.data(), data, back.size() * sizeof(float))
            .ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
    EXPECT_EQ(back, values_);
    ASSERT_EQ(ff_offload_unload(offload, stream_->handle()), FF_OK);
    ASSERT_EQ(ff_offload_place(offload, 0, &data, &device), FF_OK);
    EXPECT_EQ(device, FF_HOST);
  }
  ff_offload_destroy(offload);
}

}  // namespace
}  // namespace firstframe
