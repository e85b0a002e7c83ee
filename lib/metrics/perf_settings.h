// The VIDEOX_PERF* variables, with the meanings they have in VideoX-Fun.
//
//   VIDEOX_PERF              1 a line per request or window and a summary, 2
//   also
//                            every step; unset, 0 or not a number: off
//   VIDEOX_PERF_JSON         append records to this file, ".rank{N}" added when
//                            there are several ranks
//   VIDEOX_PERF_WARMUP       leading requests or steps left out of summaries
//   VIDEOX_PERF_RANKS        "all": every rank logs, else rank 0 alone
//   VIDEOX_PERF_PEAK_TFLOPS  peak of one device, instead of the built-in table
//   VIDEOX_PERF_DIT_PARAMS   parameters of the transformer
//   VIDEOX_PERF_FLOPS_ATTN   0: leave core attention out of FLOPs
//   VIDEOX_PERF_EVERY        steps a window, 50
//   VIDEOX_PERF_TOTAL_STEPS  planned steps, for the remaining time
//   VIDEOX_PERF_FLOPS_COEF   multiplier of a forward, instead of 3 or 2
//   RANK, WORLD_SIZE         as torchrun sets them
//
// A value that does not parse counts as unset, as in the original.

#ifndef LIB_METRICS_PERF_SETTINGS_H_
#define LIB_METRICS_PERF_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"

namespace firstframe {

struct PerfSettings {
  int64_t level = 0;                     // 0 is off
  std::optional<std::string> json_path;  // as it was set, without a rank
  int64_t warmup = 0;
  bool log_all_ranks = false;
  std::optional<double> peak_tflops;
  std::optional<int64_t> dit_params;
  bool price_attention = true;
  int64_t every = 50;
  std::optional<int64_t> total_steps;
  std::optional<double> flops_coefficient;
  int64_t rank = 0;
  int64_t world_size = 1;

  bool enabled() const { return level > 0; }
  bool ShouldLog() const { return log_all_ranks || rank == 0; }
  // "[Perf][rank0]", the start of every line.
  std::string Tag() const;
  // The file of this rank: ranks share file systems, and appending from several
  // processes to one file interleaves partial lines.
  std::optional<std::string> RankJsonPath() const;
};

// Reads the settings through `get`, which returns null for an unset variable.
PerfSettings ReadPerfSettings(absl::FunctionRef<const char*(const char*)> get);

// Ranks that hold different samples: the world divided by those that share one.
int64_t DataParallelDegree(int64_t world_size, int64_t sequence_parallel);

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_SETTINGS_H_
