#include "lib/load/roofline.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/run_threads.h"
#include "lib/base/sigbus_guard.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/memory.h"
#include "lib/load/read_queue.h"
#include "lib/load/staging.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr uint64_t kPinnedBytes = 64 << 20;
constexpr uint64_t kCollectiveBytes = 256 << 20;
constexpr uint64_t kQuickBytes = 256 << 20;
// Of all ranks together: enough for any disk, and seconds on a slow one.
constexpr uint64_t kMaxDirectBytes = uint64_t{1} << 30;
constexpr uint64_t kChunkBytes = 1 << 20;

// How much to measure.
struct Effort {
  int repeats = 3;
  uint64_t cached_bytes = std::numeric_limits<uint64_t>::max();
  uint64_t direct_bytes = kMaxDirectBytes;
  int copies = 24;
  int operations = 8;
};
constexpr Effort kQuick = {.repeats = 2,
                           .cached_bytes = kQuickBytes,
                           .direct_bytes = kQuickBytes,
                           .copies = 4,
                           .operations = 2};

int64_t Now() { return MonotonicClock::Get().NowNs(); }

// The best of `repeats` rates of `measure`, which returns bytes moved. A limit
// is what the machine can do, so the best sample is the one to hold against.
Limit BestOf(Collective& group, int repeats,
             const std::function<absl::StatusOr<uint64_t>()>& measure) {
  Limit limit;
  for (int i = 0; i < repeats; ++i) {
    if (const absl::Status met = Barrier(group); !met.ok()) {
      limit.reason = std::string(met.message());
      return limit;
    }
    const int64_t start = Now();
    const absl::StatusOr<uint64_t> bytes = measure();
    const int64_t ns = std::max<int64_t>(Now() - start, 1);
    if (!bytes.ok()) {
      // Go on meeting the others: they count on as many barriers.
      limit.reason = std::string(bytes.status().message());
      continue;
    }
    const double rate = static_cast<double>(*bytes) / static_cast<double>(ns);
    limit.gb_per_s = std::max(limit.gb_per_s.value_or(0), rate);
  }
  if (limit.gb_per_s) limit.reason.clear();
  return limit;
}

// A part of a file, for one thread.
struct Chunk {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t start = 0;  // of all files end to end
};

std::vector<Chunk> CutFiles(const OpenedSources& sources, uint64_t most_bytes) {
  std::vector<Chunk> chunks;
  uint64_t total = 0;
  for (size_t f = 0; f < sources.files.size(); ++f) {
    const uint64_t size = sources.files[f].buffered.size_bytes();
    for (uint64_t at = 0; at < size && total < most_bytes; at += kChunkBytes) {
      const uint64_t n = std::min(kChunkBytes, size - at);
      chunks.push_back({static_cast<uint32_t>(f), at, n, total});
      total += n;
    }
  }
  return chunks;
}

// Runs `work(chunk, scratch)` for every chunk on `threads` threads.
absl::StatusOr<uint64_t> ForEachChunk(
    const std::vector<Chunk>& chunks, int threads,
    const std::function<absl::Status(const Chunk&, std::byte* scratch)>& work) {
  std::atomic<size_t> next = 0;
  std::atomic<uint64_t> bytes = 0;
  std::vector<absl::Status> statuses(threads);
  RunOnThreads(threads, [&](int t) {
    std::vector<std::byte> scratch(kChunkBytes);
    while (statuses[t].ok()) {
      const size_t i = next.fetch_add(1);
      if (i >= chunks.size()) return;
      statuses[t] = work(chunks[i], scratch.data());
      bytes.fetch_add(chunks[i].size);
    }
  });
  for (const absl::Status& status : statuses) FF_RETURN_IF_ERROR(status);
  return bytes.load();
}

Limit MeasureCachedRead(CheckpointLoader& loader, Collective& group,
                        const Effort& effort) {
  const OpenedSources& sources = loader.sources();
  const std::vector<Chunk> chunks = CutFiles(sources, effort.cached_bytes);
  return BestOf(group, effort.repeats, [&] {
    return ForEachChunk(chunks, loader.options().transfer.cached_threads,
                        [&](const Chunk& chunk, std::byte* scratch) {
                          return sources.files[chunk.file].buffered.Read(
                              chunk.offset,
                              absl::MakeSpan(scratch, chunk.size));
                        });
  });
}

Limit MeasureHostCopy(CheckpointLoader& loader, Collective& group,
                      const Effort& effort, std::byte* arena) {
  const OpenedSources& sources = loader.sources();
  const std::vector<Chunk> chunks = CutFiles(
      sources, std::min(loader.plan().tensor_bytes, effort.cached_bytes));
  std::vector<std::byte*> maps;
  Limit limit;
  for (const OpenedFile& file : sources.files) {
    void* map = ::mmap(nullptr, file.buffered.size_bytes(), PROT_READ,
                       MAP_SHARED | MAP_POPULATE, file.buffered.fd(), 0);
    if (map == MAP_FAILED) {
      limit.reason = "a file cannot be mapped";
      map = nullptr;
    }
    maps.push_back(static_cast<std::byte*>(map));
  }
  const uint64_t room = loader.plan().arena_bytes;
  limit = BestOf(group, effort.repeats, [&]() -> absl::StatusOr<uint64_t> {
    if (!limit.reason.empty()) return absl::UnavailableError(limit.reason);
    return ForEachChunk(
        chunks, loader.options().transfer.cached_threads,
        [&](const Chunk& chunk, std::byte*) -> absl::Status {
          const uint64_t to = std::min(chunk.start, room);
          const uint64_t size = std::min(chunk.size, room - to);
          if (!CopyFromMapping(arena + to, maps[chunk.file] + chunk.offset,
                               size)) {
            return absl::DataLossError("a file was cut while it was mapped");
          }
          return absl::OkStatus();
        });
  });
  for (size_t i = 0; i < maps.size(); ++i) {
    if (maps[i] != nullptr) {
      ::munmap(maps[i], sources.files[i].buffered.size_bytes());
    }
  }
  return limit;
}

// The loader's own direct path into nowhere but its ring would measure the
// loader; this reads with the same depth and no arena: whole slots, file order.
Limit MeasureDirectRead(CheckpointLoader& loader, Collective& group,
                        const Effort& effort) {
  const OpenedSources& sources = loader.sources();
  absl::Status can_read_directly;
  for (const OpenedFile& file : sources.files) {
    if (!file.direct) {
      can_read_directly = absl::UnavailableError(file.no_direct_reason);
    }
  }
  const TransferOptions& transfer = loader.options().transfer;
  const uint64_t slot = transfer.direct_slot_bytes;
  struct Read {
    uint32_t file;
    uint64_t offset;
    uint64_t least;
  };
  std::vector<Read> reads;
  const uint64_t most = effort.direct_bytes / group.size();
  uint64_t total = 0;
  for (size_t f = 0; f < sources.files.size(); ++f) {
    const uint64_t size = sources.files[f].buffered.size_bytes();
    for (uint64_t at = 0; at < size && total < most; at += slot) {
      const uint64_t n = std::min(slot, size - at);
      reads.push_back({static_cast<uint32_t>(f), at, n});
      total += n;
    }
  }
  return BestOf(group, effort.repeats, [&]() -> absl::StatusOr<uint64_t> {
    FF_RETURN_IF_ERROR(can_read_directly);
    std::atomic<size_t> next = 0;
    const int threads = transfer.direct_threads;
    const int depth = transfer.direct_slots_per_thread;
    std::vector<absl::Status> statuses(threads);
    FF_ASSIGN_OR_RETURN(const HostArena memory,
                        HostArena::Allocate(slot * depth * threads));
    const auto run = [&](int t) -> absl::Status {
      std::byte* const base = memory.data() + slot * depth * t;
      std::unique_ptr<ReadQueue> queue;
      auto uring = transfer.allow_io_uring
                       ? MakeUringQueue(base, slot, depth)
                       : absl::UnavailableError("not wanted");
      queue =
          uring.ok() ? *std::move(uring) : MakePreadQueue(base, slot, depth);
      std::vector<int> free;
      for (int i = 0; i < depth; ++i) free.push_back(i);
      while (true) {
        while (!free.empty()) {
          const size_t i = next.fetch_add(1);
          if (i >= reads.size()) break;
          FF_RETURN_IF_ERROR(queue->Start(
              free.back(), sources.files[reads[i].file].direct->file,
              reads[i].offset, slot, reads[i].least));
          free.pop_back();
        }
        if (queue->in_flight() == 0) return absl::OkStatus();
        FF_ASSIGN_OR_RETURN(const int done, queue->WaitOne());
        free.push_back(done);
      }
    };
    RunOnThreads(threads, [&](int t) { statuses[t] = run(t); });
    for (const absl::Status& status : statuses) FF_RETURN_IF_ERROR(status);
    return total;
  });
}

Limit MeasurePinnedCopies(CheckpointLoader& loader, Collective& group,
                          const Effort& effort, std::byte* device_arena) {
  cuda::Runtime& runtime = *loader.options().runtime;
  absl::StatusOr<cuda::PinnedBuffer> pinned =
      cuda::PinnedBuffer::Allocate(kPinnedBytes, runtime);
  absl::StatusOr<cuda::Stream> stream = cuda::Stream::Create(0, runtime);
  return BestOf(group, effort.repeats, [&]() -> absl::StatusOr<uint64_t> {
    FF_RETURN_IF_ERROR(pinned.status());
    FF_RETURN_IF_ERROR(stream.status());
    const uint64_t size = std::min(kPinnedBytes, loader.plan().arena_bytes);
    for (int i = 0; i < effort.copies; ++i) {
      FF_RETURN_IF_ERROR(stream->CopyAsync(device_arena, pinned->data(), size));
    }
    FF_RETURN_IF_ERROR(stream->Synchronize());
    return size * effort.copies;
  });
}

// Bytes of the buffer over the time of one operation, of many in a row.
Limit MeasureCollective(Collective& group, const Effort& effort,
                        std::byte* arena, uint64_t room, bool gather) {
  const uint64_t share =
      std::min(kCollectiveBytes, room) / (256 * group.size()) * 256;
  const uint64_t size =
      gather ? share * group.size() : std::min(kCollectiveBytes, room);
  return BestOf(group, effort.repeats, [&]() -> absl::StatusOr<uint64_t> {
    for (int i = 0; i < effort.operations; ++i) {
      FF_RETURN_IF_ERROR(gather ? group.AllGather(arena, share)
                                : group.Broadcast(arena, size, 0));
    }
    FF_RETURN_IF_ERROR(group.Wait());
    return size * effort.operations;
  });
}

absl::StatusOr<double> Sum(Collective& group, const Limit& limit) {
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      group.Exchange(absl::StrCat(limit.gb_per_s.value_or(0))));
  double sum = 0;
  for (const std::string& text : all) {
    double value = 0;
    if (absl::SimpleAtod(text, &value)) sum += value;
  }
  return sum;
}

}  // namespace

absl::StatusOr<Roofline> MeasureRoofline(CheckpointLoader& loader,
                                         Collective& group,
                                         const RooflineOptions& options) {
  Roofline roofline;
  const Effort effort = options.is_quick ? kQuick : Effort();
  const std::string no_device = "no device";
  // What every rank does must not depend on what one of them sees.
  const bool looks_warm =
      loader.sources().ProbeAll().fraction().value_or(1) > 0.99;
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      group.Exchange(looks_warm ? "warm" : "cold"));
  const bool is_warm = all[0] == "warm";
  if (is_warm) {
    roofline.cached_read = MeasureCachedRead(loader, group, effort);
    if (options.host_arena != nullptr) {
      roofline.host_copy =
          MeasureHostCopy(loader, group, effort, options.host_arena);
    }
  } else {
    roofline.cached_read.reason = roofline.host_copy.reason =
        "the files are not in the page cache";
  }
  if (options.measure_direct && !(options.is_quick && is_warm)) {
    roofline.direct_read = MeasureDirectRead(loader, group, effort);
  } else {
    roofline.direct_read.reason = "not wanted";
  }
  if (options.device_arena != nullptr) {
    roofline.pinned_h2d =
        MeasurePinnedCopies(loader, group, effort, options.device_arena);
  } else {
    roofline.pinned_h2d.reason = no_device;
  }
  std::byte* const shared = options.device_arena != nullptr
                                ? options.device_arena
                                : options.host_arena;
  if (group.size() > 1 && shared != nullptr) {
    const uint64_t room = loader.plan().arena_bytes;
    roofline.broadcast = MeasureCollective(group, effort, shared, room, false);
    roofline.all_gather = MeasureCollective(group, effort, shared, room, true);
  } else {
    roofline.broadcast.reason = roofline.all_gather.reason = "one rank";
  }
  FF_ASSIGN_OR_RETURN(roofline.total_pinned_h2d,
                      Sum(group, roofline.pinned_h2d));
  FF_ASSIGN_OR_RETURN(roofline.total_cached_read,
                      Sum(group, roofline.cached_read));
  FF_ASSIGN_OR_RETURN(roofline.total_direct_read,
                      Sum(group, roofline.direct_read));
  return roofline;
}

BindingLimit LimitFor(LoadMode mode, const Roofline& roofline, int ranks,
                      bool to_device, double cached_fraction) {
  BindingLimit binding;
  const auto bound = [&](std::optional<double> rate, absl::string_view name) {
    if (!rate || *rate <= 0) return;
    if (binding.gb_per_s && *binding.gb_per_s <= *rate) return;
    binding.gb_per_s = rate;
    binding.name = std::string(name);
  };
  const bool is_warm = cached_fraction > 0.5;
  const bool is_host =
      mode == LoadMode::kHost || mode == LoadMode::kToCpu || !to_device;
  if (mode == LoadMode::kShardAllgather && ranks > 1) {
    bound(is_warm ? roofline.total_cached_read : roofline.total_direct_read,
          is_warm ? "cached_read, all ranks" : "direct_read, all ranks");
    if (!is_host) bound(roofline.total_pinned_h2d, "pinned_h2d, all ranks");
    bound(roofline.all_gather.gb_per_s, "all_gather");
    return binding;
  }
  if (!is_warm) {
    bound(roofline.direct_read.gb_per_s, "direct_read");
  } else if (is_host) {
    bound(roofline.host_copy.gb_per_s, "host_copy");
  } else if (mode != LoadMode::kRegistered) {
    bound(roofline.cached_read.gb_per_s, "cached_read");
  }
  if (!is_host) bound(roofline.pinned_h2d.gb_per_s, "pinned_h2d");
  if (GetLoadModeInfo(mode).is_collective && ranks > 1) {
    bound(roofline.broadcast.gb_per_s, "broadcast");
  }
  return binding;
}

}  // namespace firstframe
