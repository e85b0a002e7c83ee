// Runs a program with our library and import hook inside it.

#ifndef LIB_OBSERVE_OBSERVATION_H_
#define LIB_OBSERVE_OBSERVATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/host/run_program.h"
#include "lib/observe/observed_process.h"

namespace firstframe {

struct ObservationOptions {
  std::vector<std::string> argv;
  // Where a temporary folder is made; must allow execution of what it holds.
  std::string scratch_folder = "/tmp";
  // Where events go: memory, so that noting them costs no disk. Without such a
  // folder, scratch_folder.
  std::string memory_folder = "/dev/shm";
  // This process's values, which the program's extend: LD_PRELOAD, PYTHONPATH,
  // NVTX_INJECTION64_PATH.
  std::string ld_preload;
  std::string python_path;
  std::string nvtx_injection;
  // Python programs list the files of their modules
  // (ObservedProcess::module_files).
  bool list_files = false;
};

struct Observation {
  ProgramExit launched;
  std::vector<ObservedProcess> processes;
  std::vector<std::string> problems;  // files that could not be read
};

// Writes the library and the hook into a new folder, runs the program to its
// end, reads what its processes left, and removes the folder. The program sees
// LD_PRELOAD, PYTHONPATH, FIRSTFRAME_STARTUP_DIR, and NVTX_INJECTION64_PATH
// where it was not set. Errors of RunProgram, and of making the folder.
absl::StatusOr<Observation> Observe(const ObservationOptions& options);

}  // namespace firstframe

#endif  // LIB_OBSERVE_OBSERVATION_H_
