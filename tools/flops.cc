// flops: what a forward, a run and a training step cost, and how much of a
// device's peak a measured time is.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/json_document.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/flops_report.h"
#include "lib/flops/flops_tables.h"
#include "lib/flops/measured_peak.h"
#include "lib/flops/measured_peak_text.h"
#include "lib/flops/model_loader.h"
#include "lib/flops/peak_choice.h"

ABSL_FLAG(int64_t, frames, 81, "{N} Frames of the video.");
ABSL_FLAG(int64_t, height, 480, "{PIXELS} Height of the video.");
ABSL_FLAG(int64_t, width, 832, "{PIXELS} Width of the video.");
ABSL_FLAG(int64_t, batch, 1, "{N} Samples of one forward.");
ABSL_FLAG(int64_t, text_tokens, -1,
          "{N} Rows of text, padding included; -1: the model's default.");
ABSL_FLAG(int64_t, image_tokens, -1,
          "{N} Rows of an image embedding; -1: the model's default.");
ABSL_FLAG(bool, per_token_timesteps, false,
          "A timestep a latent token (Wan 2.2 TI2V), not a sample.");
ABSL_FLAG(int64_t, steps, 1, "{N} Denoising or training steps.");
ABSL_FLAG(bool, cfg, false, "Classifier-free guidance: two forwards a step.");
ABSL_FLAG(int64_t, cached_forwards, 0,
          "{N} Forwards of the run that reuse a cached result (TeaCache).");
ABSL_FLAG(double, attention_density, 1.0,
          "{FRACTION} Computed share of the self-attention square (VSA, STA).");
ABSL_FLAG(int64_t, causal_blocks, 0,
          "{N} Causal self attention over N equal blocks; 0: bidirectional.");
ABSL_FLAG(int64_t, sp, 1, "{N} Devices that share a sequence.");
ABSL_FLAG(int64_t, tp, 1, "{N} Devices that share each layer.");
ABSL_FLAG(int64_t, dp, 1, "{N} Groups of devices with samples of their own.");
ABSL_FLAG(std::string, train, "none", "Price training steps.");
ABSL_FLAG(std::string, checkpointing, "none",
          "What the backward pass computes again: all blocks, or the attention "
          "cores alone.");
ABSL_FLAG(int64_t, lora_rank, 16, "{N} Rank of LoRA adapters.");
ABSL_FLAG(int64_t, accumulation, 1, "{N} Micro-steps a training step.");
ABSL_FLAG(int64_t, teacher_forwards, 0,
          "{N} Distillation: teacher forwards a micro-step.");
ABSL_FLAG(int64_t, critic_forwards, 0,
          "{N} Distillation: critic forwards a micro-step.");
ABSL_FLAG(int64_t, critic_updates, 0,
          "{N} Distillation: critic updates a micro-step.");
ABSL_FLAG(std::string, vae, "decode", "Direction of a VAE.");
ABSL_FLAG(int64_t, vae_tile, 0, "{PIXELS} Tile of a tiled VAE; 0: whole.");
ABSL_FLAG(int64_t, vae_stride, 192, "{PIXELS} Stride of the tiles.");
ABSL_FLAG(double, time_ms, 0, "{MS} Measured time of the run.");
ABSL_FLAG(std::string, device_name, "",
          "{NAME} Device, as its driver names it: \"NVIDIA H200\".");
ABSL_FLAG(std::string, math, "bf16", "Arithmetic of the peak.");
ABSL_FLAG(double, peak_tflops, 0,
          "{TFLOPS} Peak of one device; wins over --device_name and "
          "VIDEOX_PERF_PEAK_TFLOPS.");
ABSL_FLAG(bool, list, false, "List the models that are known by name.");
ABSL_FLAG(bool, measure, false,
          "Measure what this machine's device reaches, through cuBLAS. With a "
          "MODEL, its rate for --math becomes the peak.");
ABSL_FLAG(int64_t, measure_size, 8192,
          "{N} With --measure: rows and columns of the matrices.");
ABSL_FLAG(bool, peaks, false, "List the devices whose peaks are known.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "flops";
  tool.summary = "Counts the operations of diffusion models and their runs.";
  tool.arguments = "MODEL|FILE|FOLDER";
  tool.description =
      "MODEL is a name of --list; FILE a config.json ('-' and pipes too), a "
      "safetensors file or an index; FOLDER a component or a whole pipeline. A "
      "multiply-add counts "
      "two, "
      "as in torch's FlopCounterMode, and the counts equal its own. Three "
      "utilisations are kept apart: MFU credits the dense model's work, "
      "executed "
      "MFU what ran of it, HFU also what was computed twice. docs/flops.md has "
      "the formulas.";
  tool.formats = {cli::Format::kText, cli::Format::kJson};
  tool.groups = {
      {"Input",
       {"frames", "height", "width", "batch", "text_tokens", "image_tokens",
        "per_token_timesteps"}},
      {"Run",
       {"steps", "cfg", "cached_forwards", "attention_density", "causal_blocks",
        "sp", "tp", "dp"}},
      {"Training",
       {"train", "checkpointing", "lora_rank", "accumulation",
        "teacher_forwards", "critic_forwards", "critic_updates"}},
      {"VAE", {"vae", "vae_tile", "vae_stride"}},
      {"Utilisation", {"time_ms", "device_name", "math", "peak_tflops"}},
      {"Tables", {"list", "peaks", "measure", "measure_size"}}};
  tool.choices = {{"train", {"none", "full", "lora"}},
                  {"checkpointing", {"none", "full", "selective"}},
                  {"vae", {"decode", "encode"}},
                  {"math", {"fp32", "tf32", "bf16", "fp16", "fp8"}}};
  tool.environment = {
      {"VIDEOX_PERF_PEAK_TFLOPS", "peak of one device, as --peak_tflops"}};
  tool.examples = {{"flops wan2.1-t2v-14b --steps=50 --cfg --time_ms=900000 "
                    "--device_name=\"NVIDIA H200\"",
                    "utilisation of a measured run"},
                   {"flops Wan2.1-T2V-1.3B-Diffusers --height=720 --width=1280",
                    "a pipeline folder: encoder, transformer and VAE"},
                   {"flops wan2.1-t2v-1.3b --train=lora --checkpointing=full",
                    "a training step"}};
  return tool;
}

std::optional<int64_t> NonNegative(int64_t value) {
  if (value < 0) return std::nullopt;
  return value;
}

// The choices were checked when flags were parsed.
RunOptions RunFromFlags() {
  RunOptions run;
  run.steps = absl::GetFlag(FLAGS_steps);
  run.forwards_per_step = absl::GetFlag(FLAGS_cfg) ? 2 : 1;
  run.cached_forwards = absl::GetFlag(FLAGS_cached_forwards);
  run.attention_density = absl::GetFlag(FLAGS_attention_density);
  run.causal_blocks = absl::GetFlag(FLAGS_causal_blocks);
  run.sequence_parallel = absl::GetFlag(FLAGS_sp);
  run.tensor_parallel = absl::GetFlag(FLAGS_tp);
  run.data_parallel = absl::GetFlag(FLAGS_dp);
  run.gradient_accumulation = absl::GetFlag(FLAGS_accumulation);
  run.teacher_forwards = absl::GetFlag(FLAGS_teacher_forwards);
  run.critic_forwards = absl::GetFlag(FLAGS_critic_forwards);
  run.critic_updates = absl::GetFlag(FLAGS_critic_updates);
  const std::string train = absl::GetFlag(FLAGS_train);
  if (train == "full") run.training = TrainingMode::kFull;
  if (train == "lora") {
    run.training = TrainingMode::kLora;
    run.lora_rank = absl::GetFlag(FLAGS_lora_rank);
  }
  const std::string checkpointing = absl::GetFlag(FLAGS_checkpointing);
  if (checkpointing == "full") run.checkpointing = Checkpointing::kFull;
  if (checkpointing == "selective") {
    run.checkpointing = Checkpointing::kSelective;
  }
  return run;
}

const char* OrEmpty(const char* text) { return text != nullptr ? text : ""; }

absl::StatusOr<PeakChoice> PeakFromFlags(MathType math) {
  PeakWish wish;
  wish.device_name = absl::GetFlag(FLAGS_device_name);
  if (cli::WasGiven("peak_tflops")) {
    wish.flag_tflops = absl::GetFlag(FLAGS_peak_tflops);
  }
  wish.variable = OrEmpty(std::getenv("VIDEOX_PERF_PEAK_TFLOPS"));
  return ChoosePeak(wish, math, BuiltinDevicePeaks());
}

absl::StatusOr<FlopsRequest> RequestFromFlags() {
  FlopsRequest request;
  request.video = {absl::GetFlag(FLAGS_frames), absl::GetFlag(FLAGS_height),
                   absl::GetFlag(FLAGS_width)};
  request.batch = absl::GetFlag(FLAGS_batch);
  request.text_tokens = NonNegative(absl::GetFlag(FLAGS_text_tokens));
  request.image_tokens = NonNegative(absl::GetFlag(FLAGS_image_tokens));
  request.per_token_timesteps = absl::GetFlag(FLAGS_per_token_timesteps);
  request.run = RunFromFlags();
  request.encodes = absl::GetFlag(FLAGS_vae) == "encode";
  if (absl::GetFlag(FLAGS_vae_tile) > 0) {
    request.tiling = {absl::GetFlag(FLAGS_vae_tile),
                      absl::GetFlag(FLAGS_vae_stride)};
  }
  FF_ASSIGN_OR_RETURN(request.math, ParseMathType(absl::GetFlag(FLAGS_math)));
  if (cli::WasGiven("time_ms")) {
    request.time_ms = absl::GetFlag(FLAGS_time_ms);
    if (!(*request.time_ms > 0)) {
      return cli::UsageError("--time_ms must be positive");
    }
  }
  FF_ASSIGN_OR_RETURN(request.peak, PeakFromFlags(request.math));
  return request;
}

template <typename Write>
void WriteDocument(const Write& write, cli::Io& io) {
  io.out << JsonDocument("flops", 1, write);
}

void ListModels(cli::Io& io) {
  if (io.format == cli::Format::kText) {
    WriteKnownModelsText(io.out);
  } else {
    WriteDocument(WriteKnownModelsJson, io);
  }
}

void ListPeaks(cli::Io& io) {
  const DevicePeaks& peaks = BuiltinDevicePeaks();
  if (io.format == cli::Format::kText) {
    WritePeaksText(peaks, io.out);
  } else {
    WriteDocument([&](JsonWriter& json) { WritePeaksJson(peaks, json); }, io);
  }
}

absl::StatusOr<MeasuredPeak> Measure(MeasureOptions options) {
  const cuda::LibrarySearch search = cuda::MakeLibrarySearch(
      OrEmpty(std::getenv("VIRTUAL_ENV")), OrEmpty(std::getenv("CONDA_PREFIX")),
      OrEmpty(std::getenv("PATH")));
  options.size = absl::GetFlag(FLAGS_measure_size);
  return MeasurePeak(cuda::GetRuntime(), search, options);
}

void WriteMeasured(const MeasuredPeak& peak, cli::Io& io) {
  const DevicePeaks& peaks = BuiltinDevicePeaks();
  if (io.format == cli::Format::kText) {
    WriteMeasuredPeakText(peak, peaks, io.out);
  } else {
    WriteDocument(
        [&](JsonWriter& json) { WriteMeasuredPeakJson(peak, peaks, json); },
        io);
  }
}

// Puts the measured rate in the place of the datasheet's.
absl::Status UseMeasuredPeak(FlopsRequest& request) {
  FF_ASSIGN_OR_RETURN(const MeasuredPeak measured,
                      Measure({.math = {request.math}}));
  FF_ASSIGN_OR_RETURN(request.peak.tflops, BestTflops(measured, request.math));
  request.peak.reason =
      absl::StrCat("measured on ", measured.device_name, " with cuBLAS, ",
                   MathTypeName(request.math));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ModelDescription>> Load(
    const std::string& argument) {
  if (argument == "-") {
    FF_ASSIGN_OR_RETURN(const std::string text, cli::ReadInput(argument));
    FF_ASSIGN_OR_RETURN(ModelDescription model,
                        ReadModelConfig(text, "standard input"));
    return std::vector<ModelDescription>{std::move(model)};
  }
  const std::string path = cli::ResolvePath(argument);
  absl::StatusOr<std::vector<ModelDescription>> models = LoadModels(path);
  if (absl::IsNotFound(models.status()) && path != argument) {
    return LoadModels(argument);  // a model's name is no path
  }
  return models;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  const bool lists = absl::GetFlag(FLAGS_list);
  if (lists || absl::GetFlag(FLAGS_peaks)) {
    if (!arguments.empty() || (lists && absl::GetFlag(FLAGS_peaks))) {
      return cli::UsageError("--list and --peaks stand alone");
    }
    lists ? ListModels(io) : ListPeaks(io);
    return cli::Exit::kOk;
  }
  const bool measures = absl::GetFlag(FLAGS_measure);
  if (measures && arguments.empty()) {
    FF_ASSIGN_OR_RETURN(const MeasuredPeak peak, Measure({}));
    WriteMeasured(peak, io);
    return cli::Exit::kOk;
  }
  if (arguments.size() != 1) {
    return cli::UsageError("expected one MODEL, FILE or FOLDER");
  }
  FF_ASSIGN_OR_RETURN(FlopsRequest request, RequestFromFlags());
  if (measures) FF_RETURN_IF_ERROR(UseMeasuredPeak(request));
  absl::StatusOr<std::vector<ModelDescription>> models = Load(arguments[0]);
  // No model for an architecture is an answer that was not found, not a build
  // that is missing something.
  if (absl::IsUnimplemented(models.status())) {
    return absl::InvalidArgumentError(models.status().message());
  }
  if (!models.ok()) return models.status();
  FF_ASSIGN_OR_RETURN(const FlopsReport report,
                      BuildFlopsReport(*std::move(models), request));
  if (io.format == cli::Format::kText) {
    WriteFlopsText(report, io.out);
    return cli::Exit::kOk;
  }
  WriteDocument([&](JsonWriter& json) { WriteFlopsJson(report, json); }, io);
  return cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
