// What a run of a program did before its first useful work on the GPU, in sums:
// moments, imports by package, libraries, checkpoint files, CUDA.

#ifndef LIB_OBSERVE_STARTUP_FACTS_H_
#define LIB_OBSERVE_STARTUP_FACTS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/json_writer.h"
#include "lib/host/run_program.h"
#include "lib/observe/file_cache.h"
#include "lib/observe/observed_process.h"

namespace firstframe {

// Since the fork; of the first process in which it happened. Empty: never seen.
struct StartupMoments {
  std::optional<int64_t> main_ns;
  std::optional<int64_t> python_ready_ns;
  std::optional<int64_t> cuda_initialized_ns;
  std::optional<int64_t> first_context_ns;
  std::optional<int64_t> first_host_to_device_ns;
  std::optional<int64_t> first_kernel_ns;
  std::optional<int64_t> first_region_ns;
  std::optional<int64_t> first_device_to_host_ns;
  std::optional<int64_t> exit_begin_ns;
};

struct PackageImports {
  std::string package;        // "torch"
  int64_t cumulative_ns = 0;  // with what it imports of others
  int64_t self_ns = 0;        // without
  int64_t modules = 0;
};

struct LoadedLibrary {
  std::string path;
  int64_t mapped_bytes = 0;
};

struct StartupFacts {
  ProgramExit launched;
  int64_t num_processes = 0;
  int64_t dropped_events = 0;
  StartupMoments moments;
  std::vector<PackageImports> packages;  // longest first
  std::vector<LoadedLibrary> libraries;  // largest first, each path once
  std::vector<ObservedFile> files;       // in order of opening
  std::array<ObservedSum, kNumCudaSums> cuda;
  // Before the run, where it was brought about; empty: as it was, not looked
  // at.
  std::optional<FileCacheState> cache_before;
};

StartupFacts GatherStartupFacts(const ProgramExit& launched,
                                absl::Span<const ObservedProcess> processes);

// Writes the facts as one object.
void WriteStartupFactsJson(const StartupFacts& facts, JsonWriter& json);

// Writes short tables: moments, the costliest packages, the largest libraries,
// files, CUDA. Parts without content are left out.
void WriteStartupFactsText(const StartupFacts& facts, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_OBSERVE_STARTUP_FACTS_H_
