// vae_startup: where the time goes between exec and the first decoded frame.

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/interrupt.h"
#include "lib/cli/tool.h"
#include "lib/startup/startup_command.h"

ABSL_FLAG(std::string, model_path, "",
          "{PATH} Component folder, pipeline folder with vae/, or one "
          ".safetensors file. Without it a small synthetic checkpoint is made "
          "and kept in the user's cache folder.");
ABSL_FLAG(std::string, device, "auto",
          "{auto|cpu|cuda[:N]} Where to run; auto is the first GPU, else the "
          "CPU.");
ABSL_FLAG(std::string, math, "fp32",
          "Arithmetic on a GPU: fp32 to float32 accuracy, tf32 as PyTorch does "
          "by default, or bf16. The CPU computes in fp32.");
ABSL_FLAG(int, threads, 0,
          "CPU threads; 0 is every CPU that the process may use and its "
          "control group grants.");
ABSL_FLAG(bool, synchronize, false,
          "Wait for the device at both ends of every phase. Changes what "
          "overlaps with what.");
ABSL_FLAG(bool, overlap, true,
          "On a GPU, read the checkpoint while the driver is opened and the "
          "context made; false: one after the other. --synchronize implies "
          "false.");
ABSL_FLAG(std::string, process_group, "none",
          "nccl: also open NCCL and join the launcher's ranks, or a group of "
          "one, as frameworks do.");
ABSL_FLAG(int, frames, 9, "Frames to decode: 1 + 4k.");
ABSL_FLAG(int, height, 128, "Rows of a frame, in pixels; a multiple of 8.");
ABSL_FLAG(int, width, 192, "Columns of a frame, in pixels; a multiple of 8.");
ABSL_FLAG(std::string, latent_shape, "",
          "{BxCxTxHxW} Latent shape, instead of frames, height and width.");
ABSL_FLAG(std::string, latent, "",
          "{FILE} Decode tensor 'latent' of this .safetensors file.");
ABSL_FLAG(uint64_t, seed, 0, "Seed of the latent that is made otherwise.");
ABSL_FLAG(int, warm_decodes, 0, "Decodes after the first one.");
ABSL_FLAG(int, offload_cycles, 0,
          "After the decodes, move the parameters to the host and back this "
          "often, decode each time, and compare bit for bit.");
ABSL_FLAG(int, runs, 1,
          "Independent processes, one after the other; the result has minimum, "
          "median and 95th percentile of each phase.");
ABSL_FLAG(std::string, cache, "as_is",
          "State of the checkpoint in the page cache before each run. cold: "
          "evicted, and proven so, or the run is refused.");
ABSL_FLAG(std::string, tensor_output, "",
          "{FILE} Write the decoded frames: .safetensors, .npy, or .pt for "
          "torch.load.");
ABSL_FLAG(std::string, compare, "",
          "{FILE} Compare the decoded frames with tensor 'sample' of this "
          ".safetensors or .npy file of another run; exit 1 when they differ.");
ABSL_FLAG(double, rtol, 1e-4, "Tolerance of --compare: relative to |FILE|.");
ABSL_FLAG(double, atol, 1e-5, "Tolerance of --compare: absolute.");
ABSL_FLAG(std::string, trace_out, "",
          "{FILE} Write the phases as a Perfetto trace (ui.perfetto.dev).");
ABSL_FLAG(std::string, html, "", "{FILE} Write the phases as one HTML page.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  return {
      .name = "vae_startup",
      .summary =
          "Shows where the time goes between exec and the first decoded "
          "frame of a Wan VAE.",
      .description =
          "Loads a Wan 2.1 VAE (diffusers' AutoencoderKLWan) and decodes one "
          "latent, recording each phase. A parent's time includes its "
          "children's. --runs and --cache=warm|cold start processes of their "
          "own, so that each begins the same way.",
      .formats = {cli::Format::kText, cli::Format::kJson},
      .has_color = true,
      .groups =
          {{"Model",
            {"model_path", "device", "math", "threads", "synchronize",
             "overlap"}},
           {"Input",
            {"frames", "height", "width", "latent_shape", "latent", "seed"}},
           {"Measurement",
            {"warm_decodes", "offload_cycles", "runs", "cache",
             "process_group"}},
           {"Results",
            {"tensor_output", "compare", "rtol", "atol", "trace_out", "html"}}},
      .choices = {{"cache", {"as_is", "warm", "cold"}},
                  {"process_group", {"none", "nccl"}},
                  {"math", {"fp32", "tf32", "bf16"}}},
      .exits = {{cli::Exit::kFinding,
                 "the decoded frames differ from --compare, or hold NaN or "
                 "infinity"},
                {cli::Exit::kTrouble,
                 "a phase failed or was interrupted (the report is still "
                 "written), wrong usage, or output that could not be written"}},
      .environment =
          {{"RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT",
            "A launcher's rendezvous, which is kept; Open MPI's and Slurm's "
            "variables are understood too. Without one a free local port is "
            "picked."},
           {"FASTVIDEO_TRACE_ACTIVATIONS",
            "Set to 1: record statistics of every module's output in the "
            "decodes, which then run unfused. FASTVIDEO_TRACE_LAYERS, "
            "FASTVIDEO_TRACE_STATS and FASTVIDEO_TRACE_OUTPUT choose what and "
            "where; trace_diff compares such files."},
           {"VIDEOX_PERF, VIDEOX_PERF_JSON, VIDEOX_PERF_WARMUP, ...",
            "Each decode writes a request record and a log line, with the "
            "VAE's FLOPs and MFU (docs/formats/perf_records.md)."},
           {"XDG_CACHE_HOME", "Where the synthetic checkpoint is kept."}},
      .examples =
          {{"vae_startup", "Profiles the small synthetic checkpoint."},
           {"vae_startup --model_path=Wan2.1-T2V-1.3B-Diffusers --runs=5 "
            "--cache=cold",
            "Five cold starts of a real one."},
           {"vae_startup --format=json | jq .samples[0].phases",
            "The phases as data."}},
  };
}

absl::StatusOr<StartupCommand> CommandFromFlags() {
  StartupCommand command;
  command.model_path = cli::ResolvePath(absl::GetFlag(FLAGS_model_path));
  FF_ASSIGN_OR_RETURN(command.device,
                      cuda::ParseDeviceSpec(absl::GetFlag(FLAGS_device)));
  FF_ASSIGN_OR_RETURN(command.math,
                      cuda::ParseMathMode(absl::GetFlag(FLAGS_math)));
  command.threads = absl::GetFlag(FLAGS_threads);
  command.synchronize = absl::GetFlag(FLAGS_synchronize);
  command.overlaps = absl::GetFlag(FLAGS_overlap);
  command.video = {.frames = absl::GetFlag(FLAGS_frames),
                   .height = absl::GetFlag(FLAGS_height),
                   .width = absl::GetFlag(FLAGS_width)};
  command.latent_shape = absl::GetFlag(FLAGS_latent_shape);
  command.latent_file = cli::ResolvePath(absl::GetFlag(FLAGS_latent));
  command.seed = absl::GetFlag(FLAGS_seed);
  command.warm_decodes = absl::GetFlag(FLAGS_warm_decodes);
  command.joins_nccl = absl::GetFlag(FLAGS_process_group) == "nccl";
  command.offload_cycles = absl::GetFlag(FLAGS_offload_cycles);
  command.runs = absl::GetFlag(FLAGS_runs);
  command.cache = absl::GetFlag(FLAGS_cache);
  command.tensor_output = cli::ResolvePath(absl::GetFlag(FLAGS_tensor_output));
  command.compare = cli::ResolvePath(absl::GetFlag(FLAGS_compare));
  command.rtol = absl::GetFlag(FLAGS_rtol);
  command.atol = absl::GetFlag(FLAGS_atol);
  command.trace_out = cli::ResolvePath(absl::GetFlag(FLAGS_trace_out));
  command.html = cli::ResolvePath(absl::GetFlag(FLAGS_html));
  if (const absl::Status status = ValidateStartupCommand(command);
      !status.ok()) {
    return cli::UsageError(status.message());
  }
  return command;
}

// Set by a command of several runs for each of them.
std::optional<int64_t> LaunchTime() {
  const char* const text = std::getenv(kLaunchTimeVariable);
  int64_t ns = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &ns)) return std::nullopt;
  return ns;
}

// Held from the first lines of main until the report.
std::vector<std::string> g_words;
std::optional<ProcessStart> g_process_start;

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (!arguments.empty()) {
    return cli::UsageError("expected flags only; the model is --model_path");
  }
  FF_ASSIGN_OR_RETURN(StartupCommand command, CommandFromFlags());
  command.start = g_process_start;
  command.words = g_words;
  command.is_launched = LaunchTime().has_value();
  cli::CatchInterrupts();
  const auto variable = [](absl::string_view name) {
    const char* const value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return RunStartupCommand(command, variable, io);
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  firstframe::g_process_start =
      firstframe::ReadProcessStart(firstframe::LaunchTime());
  firstframe::g_words.assign(argv, argv + argc);
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
