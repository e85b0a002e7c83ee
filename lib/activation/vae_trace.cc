#include "lib/activation/vae_trace.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/tensor/shape.h"

namespace firstframe {
namespace {

// Results kept on their way before the oldest are read: 2 KiB each.
constexpr size_t kMaxPending = 256;

}  // namespace

VaeTrace::VaeTrace(ActivationTracer* tracer, const ModuleTree& tree)
    : tracer_(tracer) {
  std::vector<std::string> names;
  names.reserve(tree.modules.size());
  for (const Module& module : tree.modules) names.push_back(module.name);
  attached_message_ = tracer->Attach(names);
}

VaeTrace::~VaeTrace() { Flush().IgnoreError(); }

bool VaeTrace::Wants(const Module& module) {
  return tracer_->Traces(module.name) && tracer_->StepIsWanted();
}

absl::Status VaeTrace::OnOutput(const Module& module,
                                const ObservedTensor& output) {
  Keep(output.on_device ? OnDeviceOutput(module, output)
                        : OnHostOutput(module, output));
  return absl::OkStatus();
}

absl::Status VaeTrace::OnHostOutput(const Module& module,
                                    const ObservedTensor& output) {
  const auto size = CheckedSizeBytes(output.dtype, output.shape);
  if (!size) {
    return absl::InternalError(
        absl::StrCat(module.name, ": shape ", ShapeToString(output.shape)));
  }
  return tracer_->Record(
      module.name, "out",
      {output.dtype, output.shape,
       absl::MakeConstSpan(static_cast<const std::byte*>(output.data), *size)});
}

absl::Status VaeTrace::OnDeviceOutput(const Module& module,
                                      const ObservedTensor& output) {
  if (device_ == nullptr) {
    FF_ASSIGN_OR_RETURN(device_, DeviceStats::Create());
  }
  const auto numel = CheckedNumElements(output.shape);
  FF_ASSIGN_OR_RETURN(
      PendingStats stats,
      device_->Enqueue(output.data, output.dtype, numel.value_or(0),
                       tracer_->request(), output.stream));
  pending_.push_back(
      {module.name, output.dtype, output.shape, std::move(stats)});
  return pending_.size() < kMaxPending ? absl::OkStatus() : WritePending();
}

absl::Status VaeTrace::WritePending() {
  for (; !pending_.empty(); pending_.pop_front()) {
    const Pending& next = pending_.front();
    FF_ASSIGN_OR_RETURN(const TensorStats values, next.stats.Read());
    FF_RETURN_IF_ERROR(tracer_->RecordStats(next.module, "out", values,
                                            next.dtype, next.shape));
  }
  return absl::OkStatus();
}

absl::Status VaeTrace::Flush() {
  Keep(WritePending());
  return std::exchange(failure_, absl::OkStatus());
}

void VaeTrace::Keep(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
}

}  // namespace firstframe
