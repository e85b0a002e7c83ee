#include "lib/load/loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lib/base/status_macros.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// Reports a phase from its construction to its End().
class PhaseTimer {
 public:
  PhaseTimer(const LoadOptions& options, absl::string_view name)
      : options_(options),
        name_(name),
        start_ns_(MonotonicClock::Get().NowNs()) {}

  void End() const {
    if (!options_.on_phase) return;
    options_.on_phase({name_, start_ns_, MonotonicClock::Get().NowNs()});
  }

 private:
  const LoadOptions& options_;
  const absl::string_view name_;
  const int64_t start_ns_;
};

absl::Status CheckGoOn(const LoadOptions& options) {
  if (options.is_cancelled && options.is_cancelled()) {
    return absl::CancelledError("the load was cancelled");
  }
  if (absl::Now() > options.deadline) {
    return absl::DeadlineExceededError("the load passed its deadline");
  }
  return absl::OkStatus();
}

// The least ring that any mix of paths can work with.
uint64_t LeastRingBytes(const TransferOptions& options) {
  return 2 * options.cached_slot_bytes + 2 * options.network_slot_bytes +
         options.direct_slot_bytes * options.direct_slots_per_thread;
}

}  // namespace

absl::StatusOr<CheckpointLoader> CheckpointLoader::Create(
    const LoadSource& source, const LoadOptions& options) {
  const PhaseTimer timer(options, "plan");
  FF_ASSIGN_OR_RETURN(LoadPlan plan, MakeLoadPlan(source));
  FF_ASSIGN_OR_RETURN(OpenedSources sources, OpenSources(plan, options.policy));
  LoadOptions resolved = options;
  resolved.transfer =
      ResolveTransferOptions(options.transfer, options.runtime != nullptr,
                             options.local_ranks, CountCpus());
  if (!options.place.is_bound() && options.runtime != nullptr &&
      HasSeveralNodes()) {
    FF_ASSIGN_OR_RETURN(const cuda::DeviceProperties properties,
                        options.runtime->GetProperties(options.device));
    resolved.place = FindNumaPlace(properties.numa_node);
  }
  if (resolved.transfer.cpus.empty()) {
    resolved.transfer.cpus = resolved.place.cpus;
  }
  timer.End();
  return CheckpointLoader(std::move(plan), std::move(sources),
                          std::move(resolved));
}

absl::Status CheckpointLoader::PrepareRing(const PieceList& list) {
  const bool to_device = options_.runtime != nullptr;
  const uint64_t wanted = std::min(
      RingBytes(options_.transfer, list, to_device),
      std::max(options_.max_ring_bytes, LeastRingBytes(options_.transfer)));
  if (ring_.size_bytes() >= wanted) return absl::OkStatus();
  const PhaseTimer timer(options_, "pin");
  const uint64_t budget = ReadMemoryBudget().PinnableBytes() / 4;
  if (to_device) {
    FF_RETURN_IF_ERROR(options_.runtime->SetDevice(options_.device));
  }
  ring_ = StagingRing();
  FF_ASSIGN_OR_RETURN(
      ring_, StagingRing::Create(
                 wanted, std::min(wanted, LeastRingBytes(options_.transfer)),
                 budget, std::min(options_.transfer.cached_threads, 4),
                 options_.runtime, options_.place));
  timer.End();
  return absl::OkStatus();
}

absl::StatusOr<LoadReport> CheckpointLoader::Load(
    std::byte* arena, absl::Span<const ArenaRange> ranges,
    const std::function<absl::Status(int, absl::Span<const cuda::Stream>)>&
        on_group,
    const std::function<absl::Status()>& poll) {
  FF_RETURN_IF_ERROR(CheckGoOn(options_));
  LoadReport report;
  const Clock& clock = MonotonicClock::Get();
  const int64_t start = clock.NowNs();
  const ResidencyMap residency =
      sources_.Probe(std::min(kProbeThreads, options_.transfer.cached_threads),
                     ResidencyMap::Detail::kSample);
  const int64_t probed = clock.NowNs();
  report.probe_ns = probed - start;
  report.residency_before = residency.total();
  const PieceOptions piece_options = {
      .policy = options_.policy,
      .cached_window_bytes = options_.transfer.cached_read_bytes,
      .network_window_bytes = options_.transfer.network_read_bytes,
      .direct_window_bytes =
          options_.transfer.direct_slot_bytes - kDirectSlackBytes};
  ChosenPieces chosen =
      ChoosePieces(plan_, sources_, residency, ranges, piece_options);
  report.choose_ns = clock.NowNs() - probed;
  FF_RETURN_IF_ERROR(PrepareRing(chosen.list));

  const PhaseTimer timer(options_, "transfer");
  const uint64_t total = chosen.list.tensor_bytes;
  const TransferHooks hooks = {
      .on_group = on_group, .poll = [&](uint64_t bytes_done) -> absl::Status {
        FF_RETURN_IF_ERROR(CheckGoOn(options_));
        if (options_.on_progress) options_.on_progress(bytes_done, total);
        return poll ? poll() : absl::OkStatus();
      }};
  const Destination destination = {
      .arena = arena, .runtime = options_.runtime, .device = options_.device};
  FF_ASSIGN_OR_RETURN(
      report.transfer,
      RunTransfer(chosen.list, static_cast<int>(ranges.size()), sources_, ring_,
                  destination, options_.transfer, hooks));
  FF_RETURN_IF_ERROR(sources_.CheckUnchanged());
  timer.End();
  if (options_.on_progress) options_.on_progress(total, total);

  report.tensor_bytes = total;
  report.ring_bytes = ring_.size_bytes();
  report.ring_is_pinned = ring_.is_pinned();
  report.degraded = std::move(chosen.degraded);
  if (const CpuCount cpus = CountCpus();
      cpus.usable * 4 <= cpus.online && cpus.usable < kMaxAutoThreads) {
    report.degraded.push_back(
        absl::StrCat("limited to ", cpus.usable, " of ", cpus.online,
                     " CPUs, readers are few (mpirun: --bind-to none)"));
  }
  if (!ring_.note().empty()) report.degraded.push_back(ring_.note());
  for (const std::string& note : report.transfer.degraded) {
    report.degraded.push_back(note);
  }
  return report;
}

std::vector<LoadedTensor> TensorsIn(const LoadPlan& plan, std::byte* arena) {
  std::vector<LoadedTensor> tensors;
  tensors.reserve(plan.tensors.size());
  for (const PlannedTensor& planned : plan.tensors) {
    tensors.push_back({.name = planned.source.name,
                       .dtype = planned.source.dtype,
                       .shape = planned.source.shape,
                       .data = arena + planned.arena_offset,
                       .size_bytes = planned.source.size_bytes});
  }
  return tensors;
}

absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(const LoadSource& source,
                                                const LoadOptions& options) {
  FF_ASSIGN_OR_RETURN(CheckpointLoader loader,
                      CheckpointLoader::Create(source, options));
  LoadedCheckpoint loaded;
  std::byte* arena = nullptr;
  {
    const PhaseTimer timer(options, "allocate");
    const uint64_t size = loader.plan().arena_bytes;
    if (options.runtime != nullptr) {
      FF_RETURN_IF_ERROR(options.runtime->SetDevice(options.device));
      FF_ASSIGN_OR_RETURN(loaded.device_arena,
                          cuda::DeviceBuffer::Allocate(size, *options.runtime));
      arena = loaded.device_arena.data();
    } else {
      FF_ASSIGN_OR_RETURN(loaded.host_arena, HostArena::Allocate(size));
      arena = loaded.host_arena.data();
    }
    timer.End();
  }
  FF_ASSIGN_OR_RETURN(loaded.report, loader.LoadAll(arena));
  loaded.tensors = TensorsIn(loader.plan(), arena);
  return loaded;
}

}  // namespace firstframe
