// What observed processes left behind, as plain data.

#ifndef LIB_OBSERVE_OBSERVED_PROCESS_H_
#define LIB_OBSERVE_OBSERVED_PROCESS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/observe/event_format.h"

namespace firstframe {

// Times in this file are CLOCK_MONOTONIC, in nanoseconds; 0: did not happen.
struct ObservedEvent {
  EventKind kind = EventKind::kDlopen;
  int64_t tid = 0;
  std::string name;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t value = 0;
  uint32_t slot = 0;
};

struct ObservedImport {
  int64_t tid = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::string module;
};

struct ObservedSum {
  uint64_t calls = 0;
  uint64_t ns = 0;
  uint64_t bytes = 0;
  // Of those, calls that return before their data has moved.
  uint64_t submitted_ns = 0;
  uint64_t submitted_bytes = 0;
};

struct ObservedFile {
  std::string path;
  int64_t open_ns = 0;
  uint64_t size_bytes = 0;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t read_ns = 0;
  uint64_t mapped_bytes = 0;
};

// One image: a program between exec (or fork) and its end or next exec.
struct ObservedProcess {
  int64_t pid = 0;
  int64_t parent_pid = 0;
  bool is_fork = false;
  int64_t start_ns = 0;
  int64_t main_ns = 0;
  int64_t exit_ns = 0;
  int64_t first_region_ns = 0;
  int64_t first_kernel_ns = 0;
  uint64_t dropped_events = 0;
  std::vector<std::string> command;
  std::array<ObservedSum, kNumCudaSums> cuda;
  std::vector<ObservedFile> files;
  std::vector<ObservedEvent> events;  // in order of their ends, about
  int64_t python_start_ns = 0;
  int64_t python_exit_ns = 0;
  std::vector<ObservedImport> imports;
  // Of its Python modules, where it was asked for (kListFilesVariable).
  std::vector<std::string> module_files;
};

// Parses the bytes of an event file. DataLoss when it is none; one that breaks
// off (the process was killed) yields what precedes the break.
absl::StatusOr<ObservedProcess> ParseEventFile(absl::string_view bytes);

// Adds the lines of an import log to `process`. Lines that are not of its form
// are left out.
void ParseImportLog(absl::string_view text, ObservedProcess* process);

// Reads every event file and import log in `folder`, in order of their starts.
// A file that cannot be read is left out and said in `problems`.
std::vector<ObservedProcess> ReadObservedProcesses(
    const std::string& folder, std::vector<std::string>* problems);

}  // namespace firstframe

#endif  // LIB_OBSERVE_OBSERVED_PROCESS_H_
