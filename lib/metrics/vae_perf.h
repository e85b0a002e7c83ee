// VIDEOX_PERF records for a program that decodes or encodes with the Wan VAE:
// one object to make at start, one scope a decode.
//
//   const PerfSettings settings = ReadPerfSettings(
//       [](const char* name) -> const char* { return std::getenv(name); });
//   std::unique_ptr<VaePerf> perf;  // null: VIDEOX_PERF is unset, nothing runs
//   if (settings.enabled()) {
//     perf = VaePerf::Create(settings, &std::cerr,
//                            {.flops = DecodeFlops(config, latent),
//                             .device = {&cuda::GetRuntime(), 0, stream},
//                             .device_name = properties.name,
//                             .math = MathType::kTf32});
//   }
//   for (...) {
//     VaePerf::Request request(perf.get());
//     decode();  // the record's stage "vae_dec"
//   }
//   if (perf != nullptr) perf->ReportSummary();
//
// Each request appends a record to VIDEOX_PERF_JSON and writes a line to the
// log stream; the end of a request waits for the device's stream.

#ifndef LIB_METRICS_VAE_PERF_H_
#define LIB_METRICS_VAE_PERF_H_

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/wan_vae_cost.h"
#include "lib/metrics/memory_probe.h"
#include "lib/metrics/perf_settings.h"
#include "lib/metrics/perf_sink.h"
#include "lib/metrics/request_recorder.h"
#include "lib/timing/marker.h"
#include "lib/wan_vae/config.h"

namespace firstframe {

// The cost model's view of a VAE's configuration.
WanVaeCostConfig ToCostConfig(const WanVaeConfig& config);

struct VaePerfOptions {
  double flops = 0;  // of one call, WanVaeDecodeCost(...)->TotalFlops(); 0: not
                     // priced
  const char* stage = "vae_dec";  // a literal; "vae_enc" for encoding
  MarkerDevice device;            // default: the host alone
  std::string device_name;        // for the peak; empty or unknown: MFU is null
  MathType math = MathType::kFp32;
  // The host's own peak, where it does the work; wins over `device_name`.
  std::optional<double> peak_tflops;
};

// Thread-safe; a request belongs to the thread that made it.
class VaePerf {
 public:
  // `log` must outlive the result; null logs nothing.
  static std::unique_ptr<VaePerf> Create(const PerfSettings& settings,
                                         std::ostream* log,
                                         const VaePerfOptions& options);

  // One call of the VAE from construction to destruction; nothing when `perf`
  // is null.
  class Request {
   public:
    explicit Request(VaePerf* perf) {
      if (perf == nullptr) return;
      request_.emplace(perf->recorder_);
      stage_.emplace(perf->stage_);
    }
    // The stage ends before the request does.
    ~Request() {
      stage_.reset();
      request_.reset();
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    std::optional<RequestScope> request_;
    std::optional<StageScope> stage_;
  };

  void ReportSummary() { recorder_.ReportSummary(); }

 private:
  VaePerf(const PerfSettings& settings, std::ostream* log,
          const VaePerfOptions& options);

  const char* const stage_;
  PerfSink sink_;
  MarkerSource markers_;
  std::unique_ptr<MemoryProbe> memory_;
  RequestRecorder recorder_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_VAE_PERF_H_
