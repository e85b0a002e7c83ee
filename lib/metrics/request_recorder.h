// Measures inference requests: the VIDEOX_PERF behaviour for C++ programs.
//
//   const PerfSettings settings = ReadPerfSettings(getenv_function);
//   PerfSink sink(settings, &std::cerr);
//   MarkerSource markers;                       // or with a device
//   RequestRecorder recorder(sink, markers);
//   recorder.SetTransformer("transformer", compat_model);
//   ...
//   {
//     RequestScope request(recorder);           // one request
//     for (each step) {
//       StageScope stage("transformer");
//       stage.SetShape(tokens, batch);
//       RunTransformer();
//     }
//     StageScope stage("vae_dec");
//     Decode();
//   }                                           // synchronise, record, log
//   recorder.ReportSummary();                   // once, at exit
//
// With VIDEOX_PERF unset, use no recorder: a StageScope outside of a request is
// one thread-local load and a branch.

#ifndef LIB_METRICS_REQUEST_RECORDER_H_
#define LIB_METRICS_REQUEST_RECORDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "lib/flops/compat_model.h"
#include "lib/metrics/memory_probe.h"
#include "lib/metrics/perf_record.h"
#include "lib/metrics/perf_sink.h"
#include "lib/timing/marker.h"

namespace firstframe {

// What is measured of one component in the request of this thread.
struct StageTimes {
  const char* key = nullptr;  // the literal it was first entered with
  std::string name;
  std::vector<MarkerPair> pairs;
  int64_t tokens = 0;  // a sample; 0: not captured
  int64_t batch = 1;
};

struct ActiveRequest {
  int64_t index = 0;
  bool is_warmup = false;
  int64_t start_ns = 0;
  MarkerSource* markers = nullptr;
  MemoryProbe* memory = nullptr;
  // Few, so a linear search beats a table. Stable addresses are not promised.
  std::vector<StageTimes> stages;

  size_t StageIndex(const char* name);
};

namespace internal {
// The request that this thread is in.
inline thread_local constinit ActiveRequest* current_request = nullptr;
}  // namespace internal

// State of a process: settings, models, the history behind the summary.
// Thread-safe. Several threads may have requests at a time; each has its own.
class RequestRecorder {
 public:
  // All must outlive the recorder. `memory` may be null. `wall_s` gives seconds
  // since 1970; null: the system's clock.
  RequestRecorder(PerfSink& sink, MarkerSource& markers,
                  MemoryProbe* memory = nullptr,
                  std::function<double()> wall_s = nullptr);

  // Prices stages called `stage` by this model; VIDEOX_PERF_DIT_PARAMS and
  // VIDEOX_PERF_FLOPS_ATTN apply. Call before requests.
  void SetTransformer(const std::string& stage, CompatModel model);
  // Prices one call of `stage` ("vae_dec") at `flops`: the record gets a "vae".
  void SetVae(const std::string& stage, double flops);
  // Peak of one device; VIDEOX_PERF_PEAK_TFLOPS wins. Unset: MFU is null.
  void SetPeakTflops(double peak_tflops);

  // Writes the summary of the measured requests; nothing when there was none or
  // when it was written before.
  void ReportSummary();

  int64_t num_requests() const;

 private:
  friend class RequestScope;

  void Begin(ActiveRequest& request);
  void End(ActiveRequest& request);
  RequestRecord Settle(const ActiveRequest& request, double e2e_s,
                       std::map<std::string, std::vector<double>>& values);
  std::optional<DitThroughput> PriceDit(const ActiveRequest& request,
                                        const RequestRecord& record) const;
  std::optional<VaeThroughput> PriceVae(const RequestRecord& record) const;
  std::optional<double> PeakOfAllDevices() const;

  PerfSink& sink_;
  MarkerSource& markers_;
  MemoryProbe* const memory_;
  const std::function<double()> wall_s_;

  mutable absl::Mutex mutex_;
  std::map<std::string, CompatModel> transformers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, double> vae_flops_ ABSL_GUARDED_BY(mutex_);
  std::optional<double> peak_tflops_ ABSL_GUARDED_BY(mutex_);
  int64_t num_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  RequestSummaryInput summary_ ABSL_GUARDED_BY(mutex_);
  bool is_reported_ ABSL_GUARDED_BY(mutex_) = false;
};

// One request, from construction to destruction, on one thread. Inside another
// request it measures nothing: its stages belong to the outer one. Left by an
// exception or an early return, it records what there is and frees the thread.
class RequestScope {
 public:
  explicit RequestScope(RequestRecorder& recorder);
  ~RequestScope();
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;

 private:
  RequestRecorder& recorder_;
  ActiveRequest request_;
  const bool is_outermost_;
};

// One call of a component. `name` must be a string literal, or live as long as
// the request. Re-entrant: a stage inside one of its own name is a second pair.
class StageScope {
 public:
  explicit StageScope(const char* name) : request_(internal::current_request) {
    if (__builtin_expect(request_ != nullptr, 0)) Enter(name);
  }
  ~StageScope() {
    if (__builtin_expect(request_ != nullptr, 0)) Leave();
  }
  StageScope(const StageScope&) = delete;
  StageScope& operator=(const StageScope&) = delete;

  // Tokens a sample and samples of this call; the first call of a stage counts.
  void SetShape(int64_t tokens, int64_t batch) {
    if (request_ != nullptr) Capture(tokens, batch);
  }

 private:
  void Enter(const char* name);
  void Leave();
  void Capture(int64_t tokens, int64_t batch);

  ActiveRequest* const request_;
  size_t stage_ = 0;
  Marker start_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_REQUEST_RECORDER_H_
