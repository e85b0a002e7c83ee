#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/offload/module.h"
#include "lib/wan_vae/cuda/cuda_wan_vae.h"
#include "lib/wan_vae/cuda/device_parameters.h"
#include "lib/wan_vae/cuda/output_drain.h"
#include "lib/wan_vae/cuda/plan.h"
#include "lib/wan_vae/cuda/plan_runner.h"

namespace firstframe {
namespace {

using cuda::ConvKernelKind;
using cuda::DeviceBuffer;
using cuda::Event;
using cuda::EventKind;
using cuda::Plan;
using cuda::PlanOptions;
using cuda::Stream;

// The host runs at most this many operations ahead of the device, in batches,
// so that progress means something and a cancelled run ends soon.
constexpr int kBatchOps = 48;
constexpr size_t kBatchesAhead = 3;

// Layers with fewer channels fill no tile, and their norms over a few values
// amplify what rounding to TF32 takes away.
constexpr int64_t kNarrowestForTensorCores = 8;

class PlannedWanVae final : public CudaWanVae {
 public:
  PlannedWanVae(const WanVaeConfig& config, const PlanOptions& options,
                const cuda::DeviceProperties& device, Stream stream,
                Stream drain_stream, Event start, Event end)
      : CudaWanVae(config),
        options_(options),
        device_(device.ordinal),
        multiprocessors_(device.multiprocessors),
        stream_(std::move(stream)),
        drain_stream_(std::move(drain_stream)),
        start_(std::move(start)),
        end_(std::move(end)),
        parameters_(tree(), options, device.ordinal) {}

  absl::Status AllocateParameters() override { return parameters_.Allocate(); }

  absl::Status AssignParameter(int index, const TensorView& value) override {
    FF_CHECK(index >= 0 && index < static_cast<int>(tree().parameters.size()));
    return parameters_.Assign(index, value);
  }

  absl::StatusOr<std::vector<bool>> TakeParameters(
      absl::Span<const TensorView> values,
      absl::Span<const HostBlock> blocks) override {
    return parameters_.Take(values, blocks);
  }

  absl::Status Finalize() override {
    return parameters_.Prepare(/*encoder=*/false, stream_);
  }

  int64_t ParameterBytes() const override { return parameters_.bytes(); }
  int64_t WorkspaceBytes() const override { return peak_workspace_bytes_; }
  int64_t PeakDeviceBytes() const override {
    return std::max(parameters_.peak_bytes(), peak_bytes_);
  }
  absl::StatusOr<OffloadModule*> OffloadableDecoder() override {
    if (!is_finalized()) {
      return absl::FailedPreconditionError(
          "the decoder's parameters are not finalized");
    }
    if (offloadable_ == nullptr) {
      cuda::DeviceParameters::PackedBlock block =
          parameters_.TakePacked(/*encoder=*/false);
      std::vector<OffloadTensor> tensors(1);
      tensors[0].name = "decoder";
      tensors[0].dtype = DType::kU8;
      tensors[0].shape = {block.size_bytes};
      tensors[0].size_bytes = static_cast<uint64_t>(block.size_bytes);
      tensors[0].data = block.data;
      tensors[0].device = device_;
      tensors[0].storage = std::move(block.memory);
      offloadable_ = std::make_unique<OffloadModule>(std::move(tensors));
    }
    return offloadable_.get();
  }
  cuda::StreamHandle stream() const override { return stream_.handle(); }

  int64_t LastRunDeviceNs() const override { return last_run_ns_; }
  double LastRunFlops() const override { return last_run_flops_; }

  void TimeLayers(bool on) override { times_layers_ = on; }
  const std::vector<LayerTime>& LastLayerTimes() const override {
    return layer_times_;
  }

  int64_t PlannedDecodeBytes(const Shape& latent) const override {
    const Plan plan = cuda::PlanDecode(tree(), latent, options_);
    return plan.arena_bytes + InputBytes(latent);
  }

 protected:
  bool is_finalized() const override { return parameters_.is_prepared(false); }

  absl::StatusOr<FloatTensor> DecodeTile(const FloatTensor& latents,
                                         const ChunkContext& context) override {
    if (offloadable_ != nullptr) {
      const OffloadTensor& parameters = offloadable_->tensors()[0];
      if (parameters.device == kHostMemory) {
        return absl::FailedPreconditionError(
            "the decoder's parameters are on the host, expected them loaded");
      }
      parameters_.Rebase(/*encoder=*/false, parameters.data);
    }
    return Run(/*encoder=*/false, latents, context);
  }

  absl::StatusOr<FloatTensor> EncodeTile(const FloatTensor& samples,
                                         const ChunkContext& context) override {
    if (4 % config().TemporalFactor() != 0) {
      return absl::UnimplementedError(absl::StrCat(
          "temporal factor ", config().TemporalFactor(),
          ", expected 1, 2 or 4: the encoder takes 4 frames at a time"));
    }
    if (!parameters_.is_prepared(true)) {
      FF_RETURN_IF_ERROR(parameters_.Prepare(true, stream_));
    }
    return Run(/*encoder=*/true, samples, context);
  }

 private:
  static int64_t InputBytes(const Shape& shape) {
    return 4 * *CheckedNumElements(shape);
  }
  static int64_t OutputBytes(const Plan& plan) {
    return int64_t{4} * plan.batch * plan.out_channels * plan.out_frames *
           plan.out_height * plan.out_width;
  }

  const Plan& PlanFor(bool encoder, const Shape& shape, bool observed,
                      bool per_chunk) {
    const auto key = std::make_tuple(encoder, shape, observed, per_chunk);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    // A handful of sizes alternate at most (whole tiles and those at edges).
    if (plans_.size() >= 8) plans_.clear();
    PlanOptions options = options_;
    options.observed = observed;
    options.quant_conv_per_chunk = per_chunk;
    Plan plan = encoder ? cuda::PlanEncode(tree(), shape, options)
                        : cuda::PlanDecode(tree(), shape, options);
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  // Makes the buffers large enough; gives the old one back first.
  static absl::Status Reserve(DeviceBuffer& buffer, int64_t bytes) {
    if (static_cast<int64_t>(buffer.size_bytes()) >= bytes) {
      return absl::OkStatus();
    }
    buffer = DeviceBuffer();
    FF_ASSIGN_OR_RETURN(buffer, DeviceBuffer::Allocate(bytes));
    return absl::OkStatus();
  }

  absl::StatusOr<FloatTensor> Run(bool encoder, const FloatTensor& input,
                                  const ChunkContext& context) {
    FF_RETURN_IF_ERROR(context.checkpoint(0.0));
    const Plan& plan =
        PlanFor(encoder, input.shape, context.observer != nullptr,
                context.quant_conv_per_chunk);
    FF_RETURN_IF_ERROR(Reserve(arena_, plan.arena_bytes));
    FF_RETURN_IF_ERROR(Reserve(input_, InputBytes(input.shape)));
    // A decode's frames leave one by one; what an encode gives is small.
    if (encoder) FF_RETURN_IF_ERROR(Reserve(output_, OutputBytes(plan)));
    peak_workspace_bytes_ = std::max<int64_t>(
        peak_workspace_bytes_,
        arena_.size_bytes() + input_.size_bytes() + output_.size_bytes());
    peak_bytes_ =
        std::max(peak_bytes_, peak_workspace_bytes_ + parameters_.bytes());
    FF_RETURN_IF_ERROR(stream_.CopyAsync(input_.data(), input.values.data(),
                                         InputBytes(input.shape)));
    FloatTensor result = {.shape = {plan.batch, plan.out_channels,
                                    plan.out_frames, plan.out_height,
                                    plan.out_width}};
    std::optional<cuda::OutputDrain> drain;
    if (!encoder) {
      drain.emplace(device_, drain_stream_, cuda::kChunkPlanes,
                    OutputBytes(plan) / sizeof(float), &result.values);
    }
    const cuda::PlanBuffers buffers = {
        .arena = arena_.data(),
        .input = reinterpret_cast<const float*>(input_.data()),
        .output = reinterpret_cast<float*>(output_.data()),
        .drain = drain ? &*drain : nullptr,
        .input_channels = input.shape[1],
        .input_frames = input.shape[2]};
    cuda::PlanRunner runner(plan, tree(), parameters_, multiprocessors_,
                            buffers, stream_);
    marks_.clear();
    FF_RETURN_IF_ERROR(start_.Record(stream_.handle()));
    FF_RETURN_IF_ERROR(LaunchAll(plan, runner, context));
    FF_RETURN_IF_ERROR(end_.Record(stream_.handle()));
    if (drain) {
      FF_RETURN_IF_ERROR(drain->End());
    } else {
      result.values.resize(OutputBytes(plan) / sizeof(float));
      FF_RETURN_IF_ERROR(stream_.CopyAsync(result.values.data(), output_.data(),
                                           OutputBytes(plan)));
    }
    FF_RETURN_IF_ERROR(stream_.Synchronize());
    FF_ASSIGN_OR_RETURN(last_run_ns_, Event::ElapsedNs(start_, end_));
    FF_RETURN_IF_ERROR(SettleLayerTimes(plan));
    last_run_flops_ = plan.conv_flops;
    return result;
  }

  absl::Status LaunchAll(const Plan& plan, cuda::PlanRunner& runner,
                         const ChunkContext& context) {
    struct Batch {
      Event done;
      double share;
    };
    std::deque<Batch> batches;
    const size_t count = plan.ops.size();
    for (size_t i = 0; i < count; ++i) {
      FF_RETURN_IF_ERROR(runner.Launch(plan.ops[i], context.observer));
      if (times_layers_) {
        FF_ASSIGN_OR_RETURN(Event mark, Event::Create(EventKind::kTiming));
        FF_RETURN_IF_ERROR(mark.Record(stream_.handle()));
        marks_.push_back(std::move(mark));
      }
      if ((i + 1) % kBatchOps != 0 && i + 1 < count) continue;
      FF_ASSIGN_OR_RETURN(Event done, Event::Create(EventKind::kOrdering));
      FF_RETURN_IF_ERROR(done.Record(stream_.handle()));
      batches.push_back({std::move(done), static_cast<double>(i + 1) /
                                              static_cast<double>(count)});
      while (batches.size() > kBatchesAhead ||
             (i + 1 == count && !batches.empty())) {
        FF_RETURN_IF_ERROR(batches.front().done.Synchronize());
        const double share = batches.front().share;
        batches.pop_front();
        FF_RETURN_IF_ERROR(context.checkpoint(share));
      }
    }
    return absl::OkStatus();
  }

  // Turns the marks after each operation into times of modules.
  absl::Status SettleLayerTimes(const Plan& plan) {
    layer_times_.clear();
    std::map<int, size_t> places;
    for (size_t i = 0; i < marks_.size(); ++i) {
      const cuda::PlanOp& op = plan.ops[i];
      FF_ASSIGN_OR_RETURN(
          const int64_t ns,
          Event::ElapsedNs(i == 0 ? start_ : marks_[i - 1], marks_[i]));
      const auto [place, is_new] =
          places.emplace(op.module, layer_times_.size());
      if (is_new) layer_times_.push_back({.module = op.module});
      LayerTime& time = layer_times_[place->second];
      time.device_ns += ns;
      time.flops += op.flops;
      ++time.launches;
    }
    marks_.clear();
    return absl::OkStatus();
  }

  const PlanOptions options_;
  const int device_;
  const int multiprocessors_;
  const Stream stream_;
  const Stream drain_stream_;  // takes frames to the host
  Event start_;
  Event end_;
  cuda::DeviceParameters parameters_;
  std::unique_ptr<OffloadModule> offloadable_;  // null: nobody asked
  std::map<std::tuple<bool, Shape, bool, bool>, Plan> plans_;
  DeviceBuffer arena_;
  DeviceBuffer input_;
  DeviceBuffer output_;
  int64_t peak_workspace_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  bool times_layers_ = false;
  std::vector<Event> marks_;  // after each operation, while timing layers
  std::vector<LayerTime> layer_times_;
  int64_t last_run_ns_ = 0;
  double last_run_flops_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaWanVae>> BuildCudaWanVae(
    const WanVaeConfig& config, const CudaWanVaeOptions& options) {
  cuda::Runtime& runtime = cuda::GetRuntime();
  FF_RETURN_IF_ERROR(runtime.SetDevice(options.device));
  FF_ASSIGN_OR_RETURN(const cuda::DeviceProperties device,
                      runtime.GetProperties(options.device));
  if (device.compute_major < 8) {
    return absl::UnavailableError(absl::StrCat(
        device.name, " has compute capability ", device.compute_major, ".",
        device.compute_minor, ", expected 8.0 or newer"));
  }
  const bool has_wgmma = device.compute_major == 9 && device.compute_minor == 0;
  if (options.kernels == ConvKernelKind::kHopper && !has_wgmma) {
    return absl::UnavailableError(absl::StrCat(
        device.name, " has no wgmma: compute capability ", device.compute_major,
        ".", device.compute_minor, ", expected 9.0"));
  }
  const bool is_narrow = config.decoder_base_dim < kNarrowestForTensorCores;
  const PlanOptions plan_options = {
      .kind = options.kernels.value_or(has_wgmma && !is_narrow
                                           ? ConvKernelKind::kHopper
                                           : ConvKernelKind::kPortable),
      .mode = options.math};
  FF_ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  FF_ASSIGN_OR_RETURN(Stream drain_stream, Stream::Create());
  FF_ASSIGN_OR_RETURN(Event start, Event::Create(EventKind::kTiming));
  FF_ASSIGN_OR_RETURN(Event end, Event::Create(EventKind::kTiming));
  return std::make_unique<PlannedWanVae>(
      config, plan_options, device, std::move(stream), std::move(drain_stream),
      std::move(start), std::move(end));
}

}  // namespace firstframe
