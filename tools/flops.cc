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
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/base/version.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/flops_report.h"
#include "lib/flops/known_models.h"
#include "lib/flops/measured_peak.h"
#include "lib/flops/model_loader.h"

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
          "MODEL, its bf16 or --math rate becomes the peak.");
ABSL_FLAG(bool, peaks, false, "List the devices whose peaks are known.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "flops";
  tool.summary = "Counts the operations of diffusion models and their runs.";
  tool.arguments = "MODEL|FILE|FOLDER";
  tool.description =
      "MODEL is a name of --list; FILE a config.json, a safetensors file or an "
      "index; FOLDER a component or a whole pipeline. A multiply-add counts "
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
      {"Tables", {"list", "peaks", "measure"}}};
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

// Finds the peak, or the reason why there is none.
void SetPeak(FlopsRequest& request) {
  request.peak_reason = "no --device_name and no --peak_tflops";
  const std::string name = absl::GetFlag(FLAGS_device_name);
  if (!name.empty()) {
    const auto device = FindDevicePeak(BuiltinDevicePeaks(), name);
    request.peak_reason = std::string(device.status().message());
    if (device.ok()) {
      request.device = *device;
      const auto rate = PeakTflops(*device, request.math);
      request.peak_reason = std::string(rate.status().message());
      if (rate.ok()) {
        request.peak_tflops = *rate;
        request.peak_reason =
            absl::StrCat(device->board(), ", ", MathTypeName(request.math),
                         " dense, ", device->source());
      }
    }
  }
  // The environment variable is the default of the flag that wins over it.
  const char* variable = std::getenv("VIDEOX_PERF_PEAK_TFLOPS");
  double peak = absl::GetFlag(FLAGS_peak_tflops);
  std::string reason = "--peak_tflops";
  if (!cli::WasGiven("peak_tflops") && variable != nullptr &&
      absl::SimpleAtod(variable, &peak)) {
    reason = "VIDEOX_PERF_PEAK_TFLOPS";
  }
  if (peak > 0) {
    request.peak_tflops = peak;
    request.peak_reason = reason;
  }
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
  SetPeak(request);
  return request;
}

void BeginDocument(JsonWriter& json) {
  const BuildInfo build = GetBuildInfo();
  json.BeginObject();
  json.Key("schema").BeginObject();
  json.Key("name").String("firstframe.flops");
  json.Key("version").Int(1);
  json.EndObject();
  json.Key("tool").BeginObject();
  json.Key("name").String("flops");
  json.Key("version").String(build.version);
  json.Key("commit").String(build.commit);
  json.EndObject();
}

void ListModels(cli::Io& io) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginDocument(json);
  json.Key("models").BeginArray();
  for (const std::string& name : KnownModelNames()) {
    const ModelDescription model = *KnownModel(name);
    const int64_t params = model.compat ? model.compat->params : 0;
    if (io.format == cli::Format::kText) {
      io.out << absl::StrFormat("%-20s %-32s", name, model.class_name);
      if (params > 0) io.out << absl::StrFormat(" %14d parameters", params);
      io.out << '\n';
    }
    json.BeginObject();
    json.Key("name").String(name);
    json.Key("class").String(model.class_name);
    json.Key("params");
    params > 0 ? json.Int(params) : json.Null();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  if (io.format == cli::Format::kJson) io.out << text << '\n';
}

std::string Rate(double rate) {
  return rate > 0 ? absl::StrFormat("%g", rate) : "-";
}

void ListPeaks(cli::Io& io) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginDocument(json);
  json.Key("devices").BeginArray();
  if (io.format == cli::Format::kText) {
    io.out
        << "board                      fp32    tf32    bf16     fp8    GB/s  "
           "source\n";
  }
  const auto rate = [&json](const char* key, double value) {
    json.Key(key);
    value > 0 ? json.Double(value) : json.Null();
  };
  for (const DevicePeak& device : BuiltinDevicePeaks().device()) {
    if (io.format == cli::Format::kText) {
      io.out << absl::StrFormat(
          "%-23s %7s %7s %7s %7s %7s  %s (%s)\n", device.board(),
          Rate(device.fp32_tflops()), Rate(device.tf32_tflops()),
          Rate(device.bf16_tflops()), Rate(device.fp8_tflops()),
          Rate(device.memory_gb_per_s()), device.source(), device.date());
    }
    json.BeginObject();
    json.Key("board").String(device.board());
    json.Key("names").BeginArray();
    for (const std::string& name : device.name()) json.String(name);
    json.EndArray();
    rate("fp32_tflops", device.fp32_tflops());
    rate("tf32_tflops", device.tf32_tflops());
    rate("bf16_tflops", device.bf16_tflops());
    rate("fp8_tflops", device.fp8_tflops());
    rate("memory_gb_per_s", device.memory_gb_per_s());
    json.Key("source").String(device.source());
    json.Key("date").String(device.date());
    json.Key("note").String(device.note());
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  if (io.format == cli::Format::kJson) io.out << text << '\n';
}

const char* OrEmpty(const char* text) { return text != nullptr ? text : ""; }

absl::StatusOr<MeasuredPeak> Measure() {
  const cuda::LibrarySearch search = cuda::MakeLibrarySearch(
      OrEmpty(std::getenv("VIRTUAL_ENV")), OrEmpty(std::getenv("CONDA_PREFIX")),
      OrEmpty(std::getenv("PATH")));
  return MeasurePeak(cuda::GetRuntime(), search);
}

// The table's rate for the device that was measured, if it has one.
std::optional<double> Datasheet(const MeasuredPeak& peak, MathType math) {
  const auto device = FindDevicePeak(BuiltinDevicePeaks(), peak.device_name);
  if (!device.ok()) return std::nullopt;
  const auto rate = PeakTflops(*device, math);
  if (!rate.ok()) return std::nullopt;
  return *rate;
}

void WriteMeasured(const MeasuredPeak& peak, cli::Io& io) {
  if (io.format == cli::Format::kText) {
    io.out << absl::StrFormat("%s, products of %d x %d\n", peak.device_name,
                              peak.size, peak.size);
    io.out << "math        best   median  datasheet  of it  TFLOPS\n";
    for (const MeasuredRate& rate : peak.rates) {
      const auto sheet = Datasheet(peak, rate.math);
      io.out << absl::StrFormat(
          "%-6s %9.1f %8.1f %10s %6s\n", MathTypeName(rate.math),
          rate.best_tflops, rate.median_tflops, sheet ? Rate(*sheet) : "-",
          sheet ? absl::StrFormat("%.1f%%", rate.best_tflops / *sheet * 100)
                : "-");
    }
    io.out << absl::StrFormat(
        "copy   %9.1f GB/s, read and written\nevents saw %.4f s of %.4f s on "
        "the "
        "host clock\n",
        peak.copy_gb_per_s, peak.event_s, peak.wall_s);
    return;
  }
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginDocument(json);
  json.Key("device").String(peak.device_name);
  json.Key("matrix_size").Int(peak.size);
  json.Key("samples").BeginArray();
  for (const MeasuredRate& rate : peak.rates) {
    json.BeginObject();
    json.Key("math").String(MathTypeName(rate.math));
    json.Key("samples_tflops").BeginArray();
    for (const double sample : rate.samples_tflops) json.Double(sample);
    json.EndArray();
    json.Key("best_tflops").Double(rate.best_tflops);
    json.Key("median_tflops").Double(rate.median_tflops);
    json.Key("datasheet_tflops").OptionalDouble(Datasheet(peak, rate.math));
    json.EndObject();
  }
  json.EndArray();
  json.Key("copy_gb_per_s").Double(peak.copy_gb_per_s);
  json.Key("event_s").Double(peak.event_s);
  json.Key("wall_s").Double(peak.wall_s);
  json.EndObject();
  io.out << text << '\n';
}

// Puts the measured rate in the place of the datasheet's.
absl::Status UseMeasuredPeak(FlopsRequest& request) {
  FF_ASSIGN_OR_RETURN(const MeasuredPeak peak, Measure());
  for (const MeasuredRate& rate : peak.rates) {
    if (rate.math != request.math) continue;
    request.peak_tflops = rate.best_tflops;
    request.peak_reason =
        absl::StrCat("measured on ", peak.device_name, " with cuBLAS, ",
                     MathTypeName(rate.math));
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "--measure has no ", MathTypeName(request.math), " product"));
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
    FF_ASSIGN_OR_RETURN(const MeasuredPeak peak, Measure());
    WriteMeasured(peak, io);
    return cli::Exit::kOk;
  }
  if (arguments.size() != 1) {
    return cli::UsageError("expected one MODEL, FILE or FOLDER");
  }
  FF_ASSIGN_OR_RETURN(FlopsRequest request, RequestFromFlags());
  if (measures) FF_RETURN_IF_ERROR(UseMeasuredPeak(request));
  const std::string path = cli::ResolvePath(arguments[0]);
  absl::StatusOr<std::vector<ModelDescription>> models = LoadModels(path);
  if (absl::IsNotFound(models.status()) && path != arguments[0]) {
    models = LoadModels(arguments[0]);  // a model's name is no path
  }
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
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginDocument(json);
  WriteFlopsJson(report, json);
  json.EndObject();
  io.out << text << '\n';
  return cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
