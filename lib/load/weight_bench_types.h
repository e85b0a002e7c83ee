// What weight_bench is asked to do and what it finds: plain data, filled by
// weight_bench.cc and rendered by weight_bench_report.cc.

#ifndef LIB_LOAD_WEIGHT_BENCH_TYPES_H_
#define LIB_LOAD_WEIGHT_BENCH_TYPES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/load/cache_state.h"
#include "lib/load/load_mode.h"
#include "lib/load/loader.h"
#include "lib/load/residency.h"
#include "lib/load/roofline.h"

namespace firstframe {

struct WeightBenchOptions {
  std::vector<LoadMode> modes;
  int warmup = 1;
  int repeats = 3;
  CacheMode cache = CacheMode::kAsIs;
  bool verify = false;
  bool roofline = false;
  uint64_t bucket_bytes = 64 << 20;
  LoadOptions load;  // runtime null: host memory throughout
  // Device only: the stream of the group's operations.
  const cuda::Stream* stream = nullptr;
  cuda::LibrarySearch search;  // for cuFile
  // Called with what is about to be done: "independent 2/3".
  std::function<void(const std::string&)> on_step;
  // Called before each sample, warm-ups too (repeat < 0); an error ends the run
  // (fault injection, tests).
  std::function<absl::Status(LoadMode, int repeat)> before_sample;
};

// Seconds by this rank's clock. Phases of one load overlap: "read" and "h2d"
// are busy times within "transfer".
struct LoadSample {
  double seconds = 0;  // of the slowest rank: barrier to device idle
  int slowest_rank = 0;
  std::vector<double> rank_seconds;
  // This rank's.
  double plan_s = 0;
  double allocate_s = 0;  // of the arena, when this sample had to
  double pin_s = 0;       // of the ring or the mapping, when this sample had to
  double probe_s = 0;     // page cache looked at
  double choose_s = 0;    // pieces cut, their paths chosen
  double start_s = 0;     // streams, events and threads, to the first read
  double fill_s = 0;      // first read begun to the first copy enqueued
  double drain_s = 0;     // last copy enqueued to the last complete
  double read_s = 0;      // reading threads' mean busy time
  double h2d_s = 0;       // first copy enqueued to the last complete
  double copy_wait_s = 0;  // reading threads' mean wait for a free slot
  double collective_s = 0;
  double verify_s = 0;
  std::optional<double> resident_before;  // fractions, 0 to 1
  std::optional<double> resident_after;
  std::optional<bool> verified;            // all ranks; empty: not asked for
  std::vector<std::string> wrong_tensors;  // the first few of this rank
  uint64_t ring_bytes = 0;
  uint64_t bytes_by_path[3] = {};  // by ReadPath
  std::string direct_method;
  int threads = 0;
  int64_t host_bytes_added = 0;  // peak resident set, growth during the sample
  std::vector<std::string> degraded;
  std::string cufile;  // as WeightBenchResult::cufile; empty: not used
};

struct ModeResult {
  LoadMode mode = LoadMode::kToCpu;
  std::vector<LoadSample> samples;  // warm-ups are not among them
  std::string chosen_because;       // by "auto"; empty: asked for by name
  std::string skipped;              // why there are none; empty: there are
  BindingLimit limit;               // with WeightBenchOptions::roofline

  double BestSeconds() const;
  double MedianSeconds() const;
  double MeanSeconds() const;
};

struct WeightBenchResult {
  // "not used", "direct", or "compat: " and why.
  std::string cufile = "not used";
  uint64_t tensors = 0;
  uint64_t files = 0;
  uint64_t tensor_bytes = 0;
  int ranks = 1;
  double plan_s = 0;
  // Once per process, before any sample.
  double context_s = 0;  // CUDA context
  double group_s = 0;    // joining the ranks; set by the caller
  std::vector<ModeResult> modes;
  std::optional<Roofline> roofline;
  Residency residency;  // before the first load
};

}  // namespace firstframe

#endif  // LIB_LOAD_WEIGHT_BENCH_TYPES_H_
