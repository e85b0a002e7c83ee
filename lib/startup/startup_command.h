// The whole of vae_startup behind its flags.

#ifndef LIB_STARTUP_STARTUP_COMMAND_H_
#define LIB_STARTUP_STARTUP_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cli/tool.h"
#include "lib/cuda/device.h"
#include "lib/dist/launch.h"
#include "lib/host/process.h"
#include "lib/startup/repeat.h"
#include "lib/startup/vae_startup.h"

namespace firstframe {

// The flags of tools/vae_startup.cc; empty strings are flags not given. Paths
// are resolved.
struct StartupCommand {
  std::vector<std::string> words;  // of the command line, for the report
  std::string model_path;
  cuda::DeviceSpec device;
  cuda::MathMode math = cuda::MathMode::kFp32;
  int threads = 0;
  bool synchronize = false;
  bool overlaps = true;
  VideoSize video;
  std::string latent_shape;
  std::string latent_file;
  uint64_t seed = 0;
  int warm_decodes = 0;
  bool joins_nccl = false;
  int offload_cycles = 0;
  int runs = 1;
  std::string cache = "as_is";  // as_is, warm, cold
  std::string tensor_output;
  std::string compare;
  double rtol = 0;
  double atol = 0;
  std::string trace_out;
  std::string html;
  std::optional<ProcessStart> start;  // of this process
  // This process is one run of a command that prepared the cache for it.
  bool is_launched = false;
};

// InvalidArgument for values that cannot be: counts below their least, flags
// that exclude each other.
absl::Status ValidateStartupCommand(const StartupCommand& command);

// Returns the flags with which one run of `command` is started as a process.
std::vector<std::string> ChildFlags(const StartupCommand& command);

// Runs once in this process, or, for several runs or a cache state to bring
// about, in processes of their own; writes the report to `io.out`. Returns an
// error after the report when a phase failed or was interrupted.
absl::StatusOr<cli::Exit> RunStartupCommand(const StartupCommand& command,
                                            GetVariable variable, cli::Io& io);

}  // namespace firstframe

#endif  // LIB_STARTUP_STARTUP_COMMAND_H_
