#include "lib/profiler/cupti_collector.h"

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/profiler/tick_clock.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A CUPTI of our own: one for the process, as the real one is.
struct FakeCupti {
  CuptiApi::BufferRequested requested = nullptr;
  CuptiApi::BufferCompleted completed = nullptr;
  std::set<int32_t> kinds;
  std::string holder;  // not empty: somebody else has subscribed
  size_t dropped = 0;
  bool subscribed = false;
  std::vector<std::pair<size_t, size_t>>
      walk;  // offsets of records in a buffer
  size_t next = 0;
  std::vector<std::pair<int, uint64_t>> pushed;  // external ids
};
FakeCupti* fake = nullptr;

cupti::Result GetVersion(uint32_t* version) {
  *version = 130001;
  return cupti::kSuccess;
}
cupti::Result GetResultString(cupti::Result, const char** text) {
  *text = "FAKE_ERROR";
  return cupti::kSuccess;
}
cupti::Result RegisterCallbacks(CuptiApi::BufferRequested requested,
                                CuptiApi::BufferCompleted completed) {
  fake->requested = requested;
  fake->completed = completed;
  return cupti::kSuccess;
}
cupti::Result Enable(int32_t kind) {
  fake->kinds.insert(kind);
  return cupti::kSuccess;
}
cupti::Result Disable(int32_t kind) {
  fake->kinds.erase(kind);
  return cupti::kSuccess;
}
cupti::Result FlushAll(uint32_t) { return cupti::kSuccess; }
cupti::Result GetNextRecord(uint8_t* buffer, size_t, void** record) {
  if (fake->next == fake->walk.size()) return cupti::kMaxLimitReached;
  *record = buffer + fake->walk[fake->next++].first;
  return cupti::kSuccess;
}
cupti::Result GetDropped(void*, uint32_t, size_t* dropped) {
  *dropped = std::exchange(fake->dropped, 0);
  return cupti::kSuccess;
}
cupti::Result SetAttribute(int, size_t*, void*) { return cupti::kSuccess; }
cupti::Result GetCallbackName(int domain, uint32_t cbid, const char** name) {
  static const std::map<std::pair<int, uint32_t>, const char*> kNames = {
      {{2, 1}, "cudaGetDevice_v3020"},
      {{2, 2}, "cudaLaunchKernel_v7000"},
      {{2, 3}, "cudaGraphAddNode_v12020"},
      {{1, 4}, "cuLaunchKernel"},
      {{1, 5}, "cuMemcpyHtoD_v2"}};
  const auto found = kNames.find({domain, cbid});
  if (found == kNames.end()) return 1;
  *name = found->second;
  return cupti::kSuccess;
}
cupti::Result Subscribe(void**, CuptiApi::Callback, void*) { return 1; }
cupti::Result SubscribeV2(void** subscriber, CuptiApi::Callback, void*,
                          cupti::SubscriberParams* params) {
  if (!fake->holder.empty()) {
    std::strncpy(params->old_subscriber_name, fake->holder.c_str(),
                 params->old_subscriber_size);
    return cupti::kMultipleSubscribers;
  }
  fake->subscribed = true;
  *subscriber = fake;
  return cupti::kSuccess;
}
cupti::Result Unsubscribe(void*) {
  fake->subscribed = false;
  return cupti::kSuccess;
}
// A clock that is a second ahead of ours.
cupti::Result GetTimestamp(uint64_t* time) {
  *time = static_cast<uint64_t>(TickClock::MonotonicNs() + 1'000'000'000);
  return cupti::kSuccess;
}

cupti::Result PushExternal(int kind, uint64_t id) {
  fake->pushed.emplace_back(kind, id);
  return cupti::kSuccess;
}
cupti::Result PopExternal(int, uint64_t* last) {
  *last = fake->pushed.back().second;
  fake->pushed.pop_back();
  return cupti::kSuccess;
}

CuptiApi FakeApi() {
  CuptiApi api = {};
  api.path = "fake";
  api.version = 130001;
  api.get_version = &GetVersion;
  api.get_result_string = &GetResultString;
  api.register_callbacks = &RegisterCallbacks;
  api.enable = &Enable;
  api.disable = &Disable;
  api.flush_all = &FlushAll;
  api.get_next_record = &GetNextRecord;
  api.get_dropped = &GetDropped;
  api.set_attribute = &SetAttribute;
  api.get_callback_name = &GetCallbackName;
  api.subscribe = &Subscribe;
  api.unsubscribe = &Unsubscribe;
  api.get_timestamp = &GetTimestamp;
  api.subscribe_v2 = &SubscribeV2;
  api.push_external = &PushExternal;
  api.pop_external = &PopExternal;
  return api;
}

class Sink : public CuptiSink {
 public:
  void OnExternal(const cupti::ExternalRecord& record) override {
    seen.push_back("external " + std::to_string(record.external_id) + " of " +
                   std::to_string(record.correlation_id));
  }
  void OnApi(const cupti::ApiRecord& record, absl::string_view name,
             bool is_driver) override {
    seen.push_back(std::string(name) + (is_driver ? " driver " : " runtime ") +
                   std::to_string(record.correlation_id));
  }
  void OnKernel(const cupti::KernelRecord& record) override {
    seen.push_back(std::string("kernel ") + record.name);
    kernel_start = record.start;
  }
  void OnMemcpy(const cupti::MemcpyRecord& record) override {
    seen.push_back("memcpy " + std::to_string(record.bytes));
  }
  void OnMemset(const cupti::MemsetRecord& record) override {
    seen.push_back("memset " + std::to_string(record.bytes));
  }
  void OnOverhead(const cupti::OverheadRecord&) override {
    seen.push_back("overhead");
  }
  std::vector<std::string> seen;
  uint64_t kernel_start = 0;
};

template <typename Record>
void Put(const Record& record, uint8_t* buffer, size_t* at) {
  std::memcpy(buffer + *at, &record, sizeof(record));
  fake->walk.emplace_back(*at, sizeof(record));
  *at += sizeof(record);
}

class CuptiCollectorTest : public ::testing::Test {
 protected:
  void SetUp() override { fake = &cupti_; }
  void TearDown() override { fake = nullptr; }
  FakeCupti cupti_;
  Sink sink_;
};

TEST_F(CuptiCollectorTest, NamesWhoHoldsCupti) {
  cupti_.holder = "CUPTI for Nsight Systems";
  EXPECT_THAT(CuptiCollector::Create(FakeApi(), {}, &sink_),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("CUPTI is held by 'CUPTI for Nsight")));
}

TEST_F(CuptiCollectorTest, DecodesWhatItSelected) {
  ASSERT_OK_AND_ASSIGN(auto collector,
                       CuptiCollector::Create(FakeApi(), {}, &sink_));
  EXPECT_TRUE(cupti_.subscribed);
  EXPECT_TRUE(cupti_.kinds.empty()) << "nothing before Enable";
  ASSERT_THAT(collector->Enable(), IsOk());
  EXPECT_EQ(cupti_.kinds.count(cupti::kConcurrentKernel), 1u);
  EXPECT_EQ(cupti_.kinds.count(cupti::kRuntime), 1u);

  uint8_t* buffer = nullptr;
  size_t size = 0, records = 0;
  cupti_.requested(&buffer, &size, &records);
  ASSERT_NE(buffer, nullptr);
  size_t at = 0;
  cupti::ExternalRecord external = {};
  external.kind = cupti::kExternalCorrelation;
  external.external_kind = cupti::kExternalOurs;
  external.external_id = 41;
  external.correlation_id = 9;
  Put(external, buffer, &at);
  cupti::ApiRecord api = {};
  api.kind = cupti::kRuntime;
  api.cbid = 2;
  api.correlation_id = 9;
  Put(api, buffer, &at);
  api.cbid = 1;  // cudaGetDevice: left out
  Put(api, buffer, &at);
  cupti::KernelRecord kernel = {};
  kernel.kind = cupti::kConcurrentKernel;
  kernel.name = "k";
  kernel.start = 5'000'000'000;
  Put(kernel, buffer, &at);
  cupti::MemcpyRecord copy = {};
  copy.kind = cupti::kMemcpy;
  copy.bytes = 7;
  Put(copy, buffer, &at);
  cupti::MemsetRecord set = {};
  set.kind = cupti::kMemset;
  set.bytes = 8;
  Put(set, buffer, &at);
  cupti::OverheadRecord overhead = {};
  overhead.kind = cupti::kOverhead;
  Put(overhead, buffer, &at);
  cupti::ApiRecord unknown = {};
  unknown.kind = 9999;
  Put(unknown, buffer, &at);
  cupti_.dropped = 3;
  cupti_.completed(nullptr, 0, buffer, size, at);
  EXPECT_TRUE(sink_.seen.empty()) << "not on CUPTI\'s thread";
  collector->Drain();
  EXPECT_THAT(sink_.seen,
              ElementsAre("external 41 of 9", "cudaLaunchKernel runtime 9",
                          "kernel k", "memcpy 7", "memset 8", "overhead"));
  EXPECT_EQ(collector->dropped(), 3);
  EXPECT_NEAR(static_cast<double>(sink_.kernel_start), 4e9, 1e6)
      << "in our clock";

  collector->Disable();
  EXPECT_TRUE(cupti_.kinds.empty());
  collector->Stop();
  EXPECT_FALSE(cupti_.subscribed);
  EXPECT_FALSE(collector->Enable().ok());
}

TEST_F(CuptiCollectorTest, PastItsBudgetItCountsAndDrops) {
  CuptiOptions options;
  options.max_host_bytes = 1;
  ASSERT_OK_AND_ASSIGN(auto collector,
                       CuptiCollector::Create(FakeApi(), options, &sink_));
  uint8_t* buffer = nullptr;
  size_t size = 0, records = 0, at = 0;
  cupti_.requested(&buffer, &size, &records);
  ASSERT_NE(buffer, nullptr) << "null would crash CUPTI before 12.9";
  cupti::KernelRecord kernel = {};
  kernel.kind = cupti::kConcurrentKernel;
  kernel.name = "k";
  Put(kernel, buffer, &at);
  Put(kernel, buffer, &at);
  cupti_.completed(nullptr, 0, buffer, size, at);
  EXPECT_TRUE(sink_.seen.empty());
  EXPECT_EQ(collector->dropped(), 2);
}

TEST_F(CuptiCollectorTest, PushesExternalIds) {
  ASSERT_OK_AND_ASSIGN(auto collector,
                       CuptiCollector::Create(FakeApi(), {}, &sink_));
  ASSERT_THAT(collector->Enable(), IsOk());
  EXPECT_EQ(cupti_.kinds.count(cupti::kExternalCorrelation), 1u);
  EXPECT_TRUE(collector->PushExternal(5));
  EXPECT_THAT(cupti_.pushed, ElementsAre(std::pair(cupti::kExternalOurs, 5u)));
  collector->PopExternal();
  EXPECT_TRUE(cupti_.pushed.empty());
}

TEST_F(CuptiCollectorTest, WithoutExternalIds) {
  CuptiOptions options;
  options.external_correlation = false;
  ASSERT_OK_AND_ASSIGN(auto collector,
                       CuptiCollector::Create(FakeApi(), options, &sink_));
  ASSERT_THAT(collector->Enable(), IsOk());
  EXPECT_EQ(cupti_.kinds.count(cupti::kExternalCorrelation), 0u);
  EXPECT_FALSE(collector->PushExternal(5));
}

TEST(CuptiCollector, NamesOfCalls) {
  for (const auto& [callback, name] : std::map<std::string, std::string>{
           {"cudaLaunchKernel_v7000", "cudaLaunchKernel"},
           {"cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"},
           {"__cudaLaunchKernel_v13000", "cudaLaunchKernel"},
           {"__cudaLaunchKernel_ptsz_v13000", "cudaLaunchKernel"},
           {"cudaMemcpy_ptds_v7000", "cudaMemcpy"},
           {"cuMemcpyHtoD_v2", "cuMemcpyHtoD"},
           {"cuLaunchKernel_ptsz", "cuLaunchKernel"},
           {"cudaStream_vx", "cudaStream_vx"},
           {"cuTail_v", "cuTail_v"}}) {
    EXPECT_EQ(ApiCallName(callback), name);
  }
}

TEST(CuptiCollector, InterestingCalls) {
  for (const char* name :
       {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync",
        "cudaMemsetAsync", "cudaStreamSynchronize", "cudaGraphLaunch",
        "cuLaunchKernel", "cuLaunchKernelEx", "cudaMalloc"}) {
    EXPECT_TRUE(IsInterestingApiCall(name)) << name;
  }
  for (const char* name :
       {"cudaGetDevice", "cudaGraphAddNode", "cudaEventQuery", "cuMemcpyHtoD",
        "cuCtxGetCurrent"}) {
    EXPECT_FALSE(IsInterestingApiCall(name)) << name;
  }
}

}  // namespace
}  // namespace firstframe
