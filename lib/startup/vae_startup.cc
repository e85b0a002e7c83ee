#include "lib/startup/vae_startup.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/activation/vae_trace.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/dist/collective.h"
#include "lib/dist/join.h"
#include "lib/dist/nccl_collective.h"
#include "lib/flops/wan_vae_cost.h"
#include "lib/metrics/vae_perf.h"
#include "lib/phase/phase.h"
#include "lib/startup/cache_state.h"
#include "lib/startup/fingerprint.h"
#include "lib/startup/latents.h"
#include "lib/startup/offload_cycles.h"
#include "lib/startup/output_facts.h"
#include "lib/startup/rendezvous.h"
#include "lib/startup/weight_reader.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/cuda/cuda_wan_vae.h"
#include "lib/wan_vae/load_weights.h"
#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

// Before anything of the driver is opened. oneDNN is linked and a CPU needs no
// setting up: there reading has nothing to overlap with.
bool MayTakeAGpu(const cuda::DeviceSpec& device) {
  return device.kind == cuda::DeviceKind::kCuda ||
         (device.kind == cuda::DeviceKind::kAuto &&
          ::access("/dev/nvidiactl", F_OK) == 0);
}

// The steps share this; each fills in what it finds out.
class Startup {
 public:
  explicit Startup(const VaeStartupOptions& options) : options_(options) {
    result_.context.synchronize = options.synchronize;
    result_.context.math = std::string(MathModeName(options.math));
    result_.sample.cache.requested = options.requested_cache;
    result_.checkpoint.is_synthetic = options.is_synthetic;
  }

  VaeStartupResult Run() {
    result_.status = RunPhases();
    // Ends a read that a failure left behind, before its phase is reported.
    reader_.reset();
    if (group_ != nullptr) LeaveGroup();
    if (!result_.checkpoint.files.empty()) {
      NoteCache(&result_.sample.cache.resident_after);
    }
    if (vae_ != nullptr) {
      result_.sample.parameter_bytes = vae_->ParameterBytes();
      result_.sample.workspace_bytes = vae_->WorkspaceBytes();
    }
    if (cuda_vae_ != nullptr) {
      result_.sample.peak_device_bytes = cuda_vae_->PeakDeviceBytes();
      result_.sample.last_decode_device_ns = cuda_vae_->LastRunDeviceNs();
    }
    return std::move(result_);
  }

 private:
  absl::Status RunPhases() {
    const bool overlaps = options_.overlaps && !options_.synchronize &&
                          MayTakeAGpu(options_.device);
    if (overlaps) FF_RETURN_IF_ERROR(StartReading());
    FF_RETURN_IF_ERROR(
        RunPhase("library_load", [&] { return LoadLibraries(); }));
    FF_RETURN_IF_ERROR(RunPhase("device_setup", [&] { return SetUpDevice(); }));
    FF_RETURN_IF_ERROR(
        RunPhase("process_group_setup", [&] { return SetUpProcessGroup(); }));
    if (!overlaps) {
      FF_RETURN_IF_ERROR(RunPhase("checkpoint_residency",
                                  [&] { return InspectCheckpoint(); }));
    }
    FF_RETURN_IF_ERROR(
        RunPhase("component.vae", [&] { return LoadComponent(); }));
    DescribeCheckpoint();
    if (options_.tracer != nullptr) {
      trace_.emplace(options_.tracer, vae_->tree());
      result_.notes.push_back(trace_->attached_message());
    }
    if (options_.perf_settings != nullptr &&
        options_.perf_settings->enabled()) {
      FF_RETURN_IF_ERROR(StartPerf());
    }
    FF_ASSIGN_OR_RETURN(result_.output, Decode("first_decode"));
    {
      const ScopedPhase phase("inspect_output");
      result_.sample.output = DescribeOutput(*result_.output);
    }
    for (int i = 0; i < options_.warm_decodes; ++i) {
      const int64_t start_ns = MonotonicClock::Get().NowNs();
      FF_RETURN_IF_ERROR(Decode("warm_decode").status());
      result_.sample.warm_decode_ns.push_back(MonotonicClock::Get().NowNs() -
                                              start_ns);
    }
    if (perf_ != nullptr) perf_->ReportSummary();
    return options_.offload_cycles > 0 ? CycleOffload() : absl::OkStatus();
  }

  // Before the first byte is read: which files, how much of them is cached.
  absl::Status InspectCheckpoint();
  void NoteCache(std::optional<double>* share);

  absl::Status StartReading();
  absl::StatusOr<VaeWeights> ReadWeights();
  absl::Status LoadLibraries();
  absl::Status SetUpDevice();
  absl::Status SetUpProcessGroup();
  void LeaveGroup();
  absl::Status LoadComponent();
  absl::Status BuildModel();
  void DescribeCheckpoint();
  absl::StatusOr<FloatTensor> MakeLatents();

  absl::Status StartPerf();
  absl::Status CycleOffload();

  absl::StatusOr<FloatTensor> Decode(absl::string_view phase) {
    return RunPhase(phase, [&] { return DecodeOnce(phase); });
  }

  absl::StatusOr<FloatTensor> DecodeOnce(absl::string_view phase) {
    RunOptions run;
    if (trace_) run.observer = &*trace_;
    run.is_cancelled = options_.is_cancelled;
    if (options_.progress) {
      run.progress = [&](double done) { options_.progress(phase, done); };
    }
    const VaePerf::Request request(perf_.get());
    absl::StatusOr<FloatTensor> output = vae_->Decode(ViewOf(latents_), run);
    if (trace_) {
      // Measuring never breaks what it measures.
      if (const absl::Status status = trace_->Flush(); !status.ok()) {
        result_.notes.push_back(
            absl::StrCat("activation trace: ", status.message()));
      }
    }
    return output;
  }

  const VaeStartupOptions& options_;
  VaeStartupResult result_;
  VaeComponent component_;
  FloatTensor latents_;
  cuda::DeviceSpec device_;
  std::unique_ptr<VaePerf> perf_;
  std::unique_ptr<WanVae> vae_;
  CudaWanVae* cuda_vae_ = nullptr;            // vae_, where it runs on a GPU
  std::optional<cuda::Stream> group_stream_;  // outlives group_
  std::unique_ptr<Collective> group_;
  std::optional<VaeTrace> trace_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<WeightReader> reader_;  // set: the read overlaps
};

void Startup::NoteCache(std::optional<double>* share) {
  const Residency residency = ProbeFiles(result_.checkpoint.files);
  *share = residency.fraction();
  result_.sample.cache.method = residency.method;
  result_.sample.cache.unknown_reason = residency.unknown_reason;
}

absl::Status Startup::InspectCheckpoint() {
  FF_ASSIGN_OR_RETURN(result_.checkpoint.files, VaeFiles(options_.model_path));
  NoteCache(&result_.sample.cache.resident_before);
  return absl::OkStatus();
}

void Startup::DescribeCheckpoint() {
  CheckpointFacts& facts = result_.checkpoint;
  facts.path = component_.checkpoint;
  facts.size_bytes = 0;
  facts.tensors = static_cast<int64_t>(checkpoint_->entries().size());
  for (const CheckpointFile& file : checkpoint_->files()) {
    facts.size_bytes += static_cast<int64_t>(file.identity.size_bytes);
  }
  for (const ParameterSpec& parameter : vae_->tree().parameters) {
    facts.parameters += *CheckedNumElements(parameter.shape);
  }
  facts.fingerprint = FingerprintCheckpoint(*checkpoint_, component_.config);
}

absl::Status Startup::StartReading() {
  FF_RETURN_IF_ERROR(RunPhase("checkpoint_residency", [&]() -> absl::Status {
    FF_RETURN_IF_ERROR(InspectCheckpoint());
    FF_ASSIGN_OR_RETURN(component_, FindVaeComponent(options_.model_path));
    return absl::OkStatus();
  }));
  reader_.emplace(component_, options_.threads, options_.is_cancelled);
  return absl::OkStatus();
}

absl::StatusOr<VaeWeights> Startup::ReadWeights() {
  if (reader_) {
    return RunPhase("vae.checkpoint_wait", [&] { return reader_->Take(); });
  }
  return ReadWeightsAsPhase(component_, vae_->tree(),
                            {.is_cancelled = options_.is_cancelled});
}

absl::Status Startup::LoadLibraries() {
  // oneDNN is linked, so its loading is a part of process.exec. On a GPU the
  // driver is opened here, and nothing of it before.
  if (options_.device.kind == cuda::DeviceKind::kCpu) return absl::OkStatus();
  const absl::StatusOr<cuda::Versions> versions =
      cuda::GetRuntime().GetVersions();
  if (versions.ok() && versions->driver > 0) {
    result_.context.runtime.emplace_back(
        "cuda_driver", cuda::VersionToString(versions->driver));
    result_.context.runtime.emplace_back(
        "cuda_runtime", cuda::VersionToString(versions->runtime));
  }
  return absl::OkStatus();
}

absl::Status Startup::SetUpDevice() {
  result_.sample.cuda_initialized_before_device_setup =
      cuda::GetRuntime().HasContext(options_.device.ordinal);
  FF_ASSIGN_OR_RETURN(const cuda::DeviceSpec device,
                      cuda::ResolveDevice(options_.device));
  device_ = device;
  result_.context.device = cuda::DeviceSpecToString(device);
  if (device.kind == cuda::DeviceKind::kCuda) {
    cuda::Runtime& runtime = cuda::GetRuntime();
    FF_ASSIGN_OR_RETURN(const cuda::DeviceProperties properties,
                        runtime.GetProperties(device.ordinal));
    result_.context.device_name = properties.name;
    FF_RETURN_IF_ERROR(runtime.SetDevice(device.ordinal));
  } else {
    // The CPU computes in float32, whatever was asked for.
    result_.context.math = "fp32";
    result_.context.runtime.emplace_back("onednn", OneDnnVersion());
  }
  SetComputeThreads(options_.threads);
  result_.context.threads = ComputeThreads();
  return absl::OkStatus();
}

absl::Status Startup::SetUpProcessGroup() {
  FF_ASSIGN_OR_RETURN(result_.sample.rendezvous,
                      ChooseRendezvous(options_.launch));
  if (!options_.joins_nccl) return absl::OkStatus();
  if (device_.kind != cuda::DeviceKind::kCuda) {
    return absl::InvalidArgumentError(
        "process group nccl on the CPU: expected --device=cuda");
  }
  FF_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::Stream::Create());
  group_stream_.emplace(std::move(stream));
  NcclOptions nccl;
  nccl.runtime = &cuda::GetRuntime();
  nccl.device = device_.ordinal;
  nccl.stream = group_stream_->handle();
  nccl.search = options_.library_search;
  if (options_.launch.world_size == 1) {
    FF_ASSIGN_OR_RETURN(
        group_, JoinNcclGroup(MakeSoleCollective(MemoryKind::kHost), nccl));
  } else {
    FF_ASSIGN_OR_RETURN(group_,
                        JoinGroup(options_.launch, {.runtime = nccl.runtime,
                                                    .device = nccl.device,
                                                    .stream = nccl.stream,
                                                    .search = nccl.search}));
  }
  result_.sample.rendezvous->transport = std::string(group_->transport());
  return absl::OkStatus();
}

void Startup::LeaveGroup() {
  if (group_->size() == 1) {
    // ncclCommDestroy waits half a second for NCCL's own threads; the end of
    // the process, which is near, does not, and nobody else is in the group.
    (void)group_.release();
    return;
  }
  const ScopedPhase phase("process_group_teardown");
  group_.reset();
}

absl::Status Startup::LoadComponent() {
  FF_RETURN_IF_ERROR(RunPhase("vae.construct", [&]() -> absl::Status {
    if (!reader_) {
      FF_ASSIGN_OR_RETURN(component_, FindVaeComponent(options_.model_path));
    }
    FF_ASSIGN_OR_RETURN(latents_, MakeLatents());
    result_.context.latent_shape = latents_.shape;
    return BuildModel();
  }));
  FF_RETURN_IF_ERROR(RunPhase("vae.device_transfer",
                              [&] { return vae_->AllocateParameters(); }));
  FF_ASSIGN_OR_RETURN(VaeWeights weights, ReadWeights());
  FF_RETURN_IF_ERROR(RunPhase("vae.weight_assignment", [&] {
    return AssignVaeWeights(weights, *vae_);
  }));
  FF_RETURN_IF_ERROR(RunPhase("vae.finalize", [&] {
    // The file's copy is of no more use here; the model keeps what it took.
    weights.ReleaseValues();
    return vae_->Finalize();
  }));
  checkpoint_ = std::move(weights.checkpoint);
  return absl::OkStatus();
}

absl::Status Startup::BuildModel() {
  if (device_.kind == cuda::DeviceKind::kCuda) {
    FF_ASSIGN_OR_RETURN(
        std::unique_ptr<CudaWanVae> vae,
        BuildCudaWanVae(component_.config,
                        {.device = device_.ordinal, .math = options_.math}));
    cuda_vae_ = vae.get();
    vae_ = std::move(vae);
    return absl::OkStatus();
  }
  FF_ASSIGN_OR_RETURN(
      vae_,
      BuildCpuWanVae(component_.config, {.threads = result_.context.threads,
                                         .likely_height = latents_.shape[3],
                                         .likely_width = latents_.shape[4]}));
  return absl::OkStatus();
}

absl::Status Startup::CycleOffload() {
  OffloadTarget target;
  if (cuda_vae_ != nullptr) {
    FF_ASSIGN_OR_RETURN(target.module, cuda_vae_->OffloadableDecoder());
    target.runtime = &cuda::GetRuntime();
    target.device = device_.ordinal;
    target.stream = cuda_vae_->stream();
  }
  FF_ASSIGN_OR_RETURN(
      result_.sample.offload,
      RunOffloadCycles(
          target, options_.offload_cycles,
          [&] { return DecodeOnce("offload.decode"); }, *result_.output));
  return absl::OkStatus();
}

absl::Status Startup::StartPerf() {
  const Shape& shape = latents_.shape;
  FF_ASSIGN_OR_RETURN(const ForwardCost cost,
                      WanVaeDecodeCost(ToCostConfig(component_.config),
                                       shape[0], shape[2], shape[3], shape[4]));
  VaePerfOptions options = {.flops = static_cast<double>(cost.TotalFlops())};
  if (cuda_vae_ != nullptr) {
    // Decode() returns when the frames are on the host: the host's clock holds
    // all of the device's work.
    options.device_name = result_.context.device_name;
    options.math = options_.math == cuda::MathMode::kBf16   ? MathType::kBf16
                   : options_.math == cuda::MathMode::kTf32 ? MathType::kTf32
                                                            : MathType::kFp32;
  }
  perf_ = VaePerf::Create(*options_.perf_settings, options_.perf_log, options);
  return absl::OkStatus();
}

absl::StatusOr<FloatTensor> Startup::MakeLatents() {
  if (!options_.latent_file.empty()) {
    result_.context.latent_source = options_.latent_file;
    return ReadLatents(component_.config, options_.latent_file);
  }
  result_.context.latent_source = absl::StrCat("seed ", options_.seed);
  absl::StatusOr<Shape> shape =
      options_.latent_shape.empty()
          ? LatentShapeOfVideo(component_.config, options_.video.frames,
                               options_.video.height, options_.video.width)
          : ParseLatentShape(component_.config, options_.latent_shape);
  FF_RETURN_IF_ERROR(shape.status());
  return SeededLatents(*shape, options_.seed);
}

}  // namespace

VaeStartupResult RunVaeStartup(const VaeStartupOptions& options) {
  return Startup(options).Run();
}

}  // namespace firstframe
