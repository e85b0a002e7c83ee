#include "lib/load/run_load_mode.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/load/baseline_load.h"
#include "lib/load/cufile_load.h"
#include "lib/load/group_load.h"
#include "lib/load/memory_budget.h"
#include "lib/load/registered_load.h"

namespace firstframe {
namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

void Keep(const GroupLoadReport& report, LoadSample* sample) {
  const TransferStats& stats = report.load.transfer;
  sample->probe_s = Seconds(report.load.probe_ns);
  sample->choose_s = Seconds(report.load.choose_ns);
  sample->start_s = Seconds(stats.start_ns);
  if (stats.first_copy_ns > 0) {
    sample->fill_s = Seconds(stats.first_copy_ns - stats.start_ns);
    sample->drain_s = Seconds(stats.wall_ns - stats.last_copy_ns);
  }
  sample->read_s = Seconds(stats.read_busy_ns);
  sample->copy_wait_s = Seconds(stats.copy_wait_ns);
  sample->h2d_s = stats.first_copy_ns > 0
                      ? Seconds(stats.wall_ns - stats.first_copy_ns)
                      : 0;
  sample->collective_s = Seconds(report.collective_ns);
  sample->ring_bytes = report.load.ring_bytes;
  std::copy(std::begin(stats.bytes_by_path), std::end(stats.bytes_by_path),
            sample->bytes_by_path);
  sample->direct_method = stats.direct_method;
  sample->threads = stats.threads;
  sample->degraded = report.load.degraded;
}

}  // namespace

absl::Status RunLoadMode(LoadMode mode, CheckpointLoader& loader,
                         std::byte* arena, bool to_device, Collective& group,
                         const WeightBenchOptions& options,
                         LoadSample* sample) {
  const LoadPlan& plan = loader.plan();
  GroupLoadOptions group_options;
  group_options.bucket_bytes = options.bucket_bytes;
  group_options.stream = to_device ? options.stream : nullptr;
  const auto baseline = [&](BaselineBroadcast broadcast) -> absl::Status {
    FF_ASSIGN_OR_RETURN(const BaselineReport report,
                        LoadPerTensor(plan, loader.sources(), arena,
                                      group_options.stream, group, broadcast));
    sample->read_s = Seconds(report.read_ns);
    sample->collective_s = Seconds(report.collective_ns);
    sample->bytes_by_path[0] = plan.tensor_bytes;
    sample->threads = 1;
    return absl::OkStatus();
  };
  switch (mode) {
    case LoadMode::kAuto:
      break;  // the caller chooses first
    case LoadMode::kToCpu: {
      FF_ASSIGN_OR_RETURN(const BaselineReport report,
                          TouchPerTensor(plan, loader.sources()));
      sample->read_s = Seconds(report.read_ns);
      sample->bytes_by_path[0] = plan.tensor_bytes;
      sample->threads = 1;
      return absl::OkStatus();
    }
    case LoadMode::kIndependentPerTensor:
      return baseline(BaselineBroadcast::kNone);
    case LoadMode::kToGpu:
    case LoadMode::kBroadcastSync:
      return baseline(BaselineBroadcast::kSync);
    case LoadMode::kBroadcastAsync:
      return baseline(BaselineBroadcast::kAsync);
    case LoadMode::kHost:
    case LoadMode::kIndependent: {
      FF_ASSIGN_OR_RETURN(const GroupLoadReport report,
                          LoadIndependent(loader, arena, group, group_options));
      Keep(report, sample);
      return absl::OkStatus();
    }
    case LoadMode::kRegistered: {
      FF_ASSIGN_OR_RETURN(
          const RegisteredReport report,
          LoadRegistered(plan, loader.sources(), arena, *options.stream,
                         ReadMemoryBudget().PinnableBytes()));
      sample->pin_s = Seconds(report.pin_ns + report.unpin_ns);
      sample->h2d_s = Seconds(report.copy_ns);
      sample->bytes_by_path[0] = plan.tensor_bytes;
      return absl::OkStatus();
    }
    case LoadMode::kCufile: {
      FF_ASSIGN_OR_RETURN(
          const CufileReport report,
          LoadWithCufile(plan, loader.sources(), arena, *options.load.runtime,
                         options.load.device,
                         loader.options().transfer.cached_threads,
                         options.search));
      sample->pin_s = Seconds(report.setup_ns);
      sample->read_s = Seconds(report.read_ns);
      sample->bytes_by_path[report.is_direct ? 1 : 0] = plan.tensor_bytes;
      sample->cufile = "direct";
      if (!report.is_direct) {
        sample->cufile = absl::StrCat("compat: ", report.why_compat);
        sample->degraded.push_back(
            absl::StrCat("cuFile is not direct, it reads into host memory and "
                         "copies: ",
                         report.why_compat));
      }
      sample->threads = loader.options().transfer.cached_threads;
      return absl::OkStatus();
    }
    case LoadMode::kBroadcastBucketed: {
      FF_ASSIGN_OR_RETURN(
          const GroupLoadReport report,
          LoadAndBroadcast(loader, arena, group, group_options));
      Keep(report, sample);
      return absl::OkStatus();
    }
    case LoadMode::kShardAllgather: {
      FF_ASSIGN_OR_RETURN(const GroupLoadReport report,
                          LoadAndGather(loader, arena, group, group_options));
      Keep(report, sample);
      return absl::OkStatus();
    }
  }
  return absl::InternalError("a mode that was not resolved");
}

}  // namespace firstframe
