#include "lib/load/group_load.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// A bucket of the arena. For gathers `share_bytes` is each rank's part of it.
struct Bucket {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
  uint64_t share_bytes = 0;
};

std::vector<Bucket> CutBuckets(const LoadPlan& plan, int ranks,
                               uint64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  const uint64_t unit = kTensorAlignment * ranks;
  bucket_bytes = std::max(unit, bucket_bytes / unit * unit);
  for (uint64_t at = 0; at < plan.arena_bytes; at += bucket_bytes) {
    const uint64_t size = std::min(bucket_bytes, plan.arena_bytes - at);
    // The last bucket's shares reach past the plan's end, into the arena's
    // tail.
    const uint64_t share = (size + unit - 1) / unit * kTensorAlignment;
    buckets.push_back({at, size, share});
  }
  return buckets;
}

// Counts the time in the group's calls.
class CollectiveTimer {
 public:
  explicit CollectiveTimer(GroupLoadReport* report) : report_(report) {}

  absl::Status Time(const std::function<absl::Status()>& call) {
    const int64_t start = MonotonicClock::Get().NowNs();
    const absl::Status status = call();
    report_->collective_ns += MonotonicClock::Get().NowNs() - start;
    return status;
  }

 private:
  GroupLoadReport* const report_;
};

// Makes the group's stream wait for what the copy streams hold now.
class StreamJoin {
 public:
  static absl::StatusOr<StreamJoin> Create(const GroupLoadOptions& options) {
    StreamJoin join(options.stream);
    if (options.stream == nullptr) return join;
    FF_ASSIGN_OR_RETURN(cuda::Event event,
                        cuda::Event::Create(cuda::EventKind::kOrdering,
                                            options.stream->runtime()));
    join.event_.push_back(std::move(event));
    return join;
  }

  absl::Status Join(absl::Span<const cuda::Stream> streams) {
    if (stream_ == nullptr) return absl::OkStatus();
    // A wait captures the event as it was recorded last, so one event serves
    // all streams and buckets.
    for (const cuda::Stream& stream : streams) {
      FF_RETURN_IF_ERROR(event_[0].Record(stream.handle()));
      FF_RETURN_IF_ERROR(event_[0].MakeWait(stream_->handle()));
    }
    return absl::OkStatus();
  }

 private:
  explicit StreamJoin(const cuda::Stream* stream) : stream_(stream) {}

  const cuda::Stream* stream_;
  std::vector<cuda::Event> event_;
};

// Ends a load on all ranks alike: a rank that failed tells the others at once,
// and all agree on the outcome.
absl::Status Conclude(Collective& group, const absl::Status& mine) {
  if (!mine.ok()) {
    group.Fail(mine);
    return mine;
  }
  return Agree(group, mine);
}

}  // namespace

uint64_t GroupArenaBytes(const LoadPlan& plan, int ranks) {
  return plan.arena_bytes + kTensorAlignment * static_cast<uint64_t>(ranks);
}

absl::StatusOr<GroupLoadReport> LoadIndependent(CheckpointLoader& loader,
                                                std::byte* arena,
                                                Collective& group,
                                                const GroupLoadOptions&) {
  GroupLoadReport report;
  const ArenaRange all[] = {{0, loader.plan().arena_bytes}};
  absl::StatusOr<LoadReport> load =
      loader.Load(arena, all, {}, [&] { return group.Check(); });
  FF_RETURN_IF_ERROR(Conclude(group, load.status()));
  report.load = *std::move(load);
  return report;
}

absl::StatusOr<GroupLoadReport> LoadAndBroadcast(
    CheckpointLoader& loader, std::byte* arena, Collective& group,
    const GroupLoadOptions& options) {
  GroupLoadReport report;
  CollectiveTimer timer(&report);
  const std::vector<Bucket> buckets =
      CutBuckets(loader.plan(), 1, options.bucket_bytes);
  const auto broadcast = [&](const Bucket& bucket) {
    report.collective_bytes += bucket.size_bytes;
    return timer.Time([&] {
      return group.Broadcast(arena + bucket.begin, bucket.size_bytes, 0);
    });
  };
  const auto run = [&]() -> absl::Status {
    if (group.rank() == 0) {
      std::vector<ArenaRange> ranges;
      for (const Bucket& bucket : buckets) {
        ranges.push_back({bucket.begin, bucket.begin + bucket.size_bytes});
      }
      FF_ASSIGN_OR_RETURN(StreamJoin join, StreamJoin::Create(options));
      FF_ASSIGN_OR_RETURN(
          report.load, loader.Load(
                           arena, ranges,
                           [&](int i, absl::Span<const cuda::Stream> streams) {
                             FF_RETURN_IF_ERROR(join.Join(streams));
                             return broadcast(buckets[i]);
                           },
                           [&] { return group.Check(); }));
    } else {
      for (const Bucket& bucket : buckets) {
        FF_RETURN_IF_ERROR(broadcast(bucket));
      }
    }
    return timer.Time([&] { return group.Wait(); });
  };
  FF_RETURN_IF_ERROR(Conclude(group, run()));
  return report;
}

absl::StatusOr<GroupLoadReport> LoadAndGather(CheckpointLoader& loader,
                                              std::byte* arena,
                                              Collective& group,
                                              const GroupLoadOptions& options) {
  GroupLoadReport report;
  CollectiveTimer timer(&report);
  const std::vector<Bucket> buckets =
      CutBuckets(loader.plan(), group.size(), options.bucket_bytes);
  const uint64_t end = loader.plan().arena_bytes;
  std::vector<ArenaRange> ranges;
  for (const Bucket& bucket : buckets) {
    const uint64_t begin = bucket.begin + bucket.share_bytes * group.rank();
    ranges.push_back(
        {std::min(begin, end), std::min(begin + bucket.share_bytes, end)});
  }
  const auto run = [&]() -> absl::Status {
    FF_ASSIGN_OR_RETURN(StreamJoin join, StreamJoin::Create(options));
    FF_ASSIGN_OR_RETURN(report.load,
                        loader.Load(
                            arena, ranges,
                            [&](int i, absl::Span<const cuda::Stream> streams) {
                              FF_RETURN_IF_ERROR(join.Join(streams));
                              report.collective_bytes += buckets[i].size_bytes;
                              return timer.Time([&] {
                                return group.AllGather(arena + buckets[i].begin,
                                                       buckets[i].share_bytes);
                              });
                            },
                            [&] { return group.Check(); }));
    return timer.Time([&] { return group.Wait(); });
  };
  FF_RETURN_IF_ERROR(Conclude(group, run()));
  return report;
}

}  // namespace firstframe
