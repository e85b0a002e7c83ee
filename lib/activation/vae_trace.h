// Traces the modules of a Wan VAE while it runs.

#ifndef LIB_ACTIVATION_VAE_TRACE_H_
#define LIB_ACTIVATION_VAE_TRACE_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "lib/activation/activation_tracer.h"
#include "lib/stats/device_stats.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/observer.h"

namespace firstframe {

// An observer that writes FastVideo's records. Pass it as RunOptions::observer;
// outputs on a device are reduced there, and read back in batches.
//
//   FF_ASSIGN_OR_RETURN(auto tracer, ActivationTracer::Create(options, pid));
//   if (tracer != nullptr) {  // null: off, and nothing is attached
//     VaeTrace trace(tracer.get(), vae->tree());
//     io.Note(trace.attached_message());
//     run.observer = &trace;
//     ... vae->Decode(latents, run) ...
//     FF_RETURN_IF_ERROR(trace.Flush());
//   }
//
// Thread-compatible: one run at a time. What goes wrong with the measurement is
// told by Flush() and never ends the run.
class VaeTrace : public ActivationObserver {
 public:
  // Attaches `tracer` to the modules of `tree`; both must outlive the trace.
  VaeTrace(ActivationTracer* tracer, const ModuleTree& tree);
  ~VaeTrace() override;

  // How many modules were attached, or a near name when none was.
  const std::string& attached_message() const { return attached_message_; }

  bool Wants(const Module& module) override;
  absl::Status OnOutput(const Module& module,
                        const ObservedTensor& output) override;

  // Writes what is still on a device, and returns the first error since the
  // last call. Call at the end of each run.
  absl::Status Flush();

 private:
  struct Pending {
    std::string module;
    DType dtype;
    Shape shape;
    PendingStats stats;
  };

  absl::Status OnHostOutput(const Module& module, const ObservedTensor& output);
  absl::Status OnDeviceOutput(const Module& module,
                              const ObservedTensor& output);
  absl::Status WritePending();
  void Keep(const absl::Status& status);

  ActivationTracer* const tracer_;
  std::string attached_message_;
  std::unique_ptr<DeviceStats> device_;
  std::deque<Pending> pending_;
  absl::Status failure_;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_VAE_TRACE_H_
