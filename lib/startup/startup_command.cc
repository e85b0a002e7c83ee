#include "lib/startup/startup_command.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/activation/activation_tracer.h"
#include "lib/activation/trace_options.h"
#include "lib/base/json_writer.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/base/version.h"
#include "lib/cli/interrupt.h"
#include "lib/cli/progress.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/metrics/perf_settings.h"
#include "lib/phase/phase.h"
#include "lib/phase/phase_document.h"
#include "lib/phase/phase_page.h"
#include "lib/phase/phase_trace.h"
#include "lib/startup/cache_state.h"
#include "lib/startup/default_checkpoint.h"
#include "lib/startup/fingerprint.h"
#include "lib/startup/startup_text.h"
#include "lib/startup/tensor_file.h"

namespace firstframe {
namespace {

bool IsInterrupted() { return cli::InterruptSignal() != 0; }

// Writes the document in the forms that the command asks for. A trace holds one
// run: the last.
absl::Status WriteResults(const StartupCommand& command,
                          const PhaseDocument& document, cli::Io& io) {
  if (io.format == cli::Format::kJson) {
    std::string text;
    JsonWriter json(&text, JsonWriter::Style::kPretty);
    WritePhaseDocument(document, json);
    io.out << text << "\n";
  }
  io.out << std::flush;
  if (!command.trace_out.empty() && !document.samples.empty()) {
    std::string trace;
    WritePhaseTrace(document.samples.back(), "vae_startup", &trace);
    FF_RETURN_IF_ERROR(WriteOutputFile(command.trace_out, trace));
  }
  if (!command.html.empty()) {
    FF_RETURN_IF_ERROR(WriteOutputFile(
        command.html, RenderPhasePage(document, "vae_startup")));
  }
  return absl::OkStatus();
}

PhaseDocument OneRun(const VaeStartupResult& result) {
  PhaseDocument document = {.tool = "vae_startup", .build = GetBuildInfo()};
  document.context_json.clear();
  JsonWriter context(&document.context_json);
  WriteContextJson(result.context, result.checkpoint, context);
  document.samples = {result.sample.phases};
  JsonWriter facts(&document.sample_facts_json.emplace_back());
  WriteFactsJson(result.sample, facts);
  return document;
}

struct Model {
  std::string path;
  bool is_synthetic = false;
};

absl::StatusOr<Model> ResolveModel(const StartupCommand& command,
                                   GetVariable variable, cli::Io& io) {
  if (!command.model_path.empty()) {
    return Model{.path = command.model_path, .is_synthetic = false};
  }
  const auto value_or_null = [](const std::optional<std::string>& value) {
    return value ? value->c_str() : nullptr;
  };
  const std::optional<std::string> cache_home = variable("XDG_CACHE_HOME");
  const std::optional<std::string> home = variable("HOME");
  const std::string folder = CachedCheckpointFolder(
      "wan_vae_small", value_or_null(cache_home), value_or_null(home));
  FF_ASSIGN_OR_RETURN(const bool was_made, EnsureSyntheticVae(folder, "small"));
  io.Note(absl::StrCat(was_made ? "made" : "using", " a synthetic checkpoint, ",
                       folder, "; --model_path takes a real one"));
  return Model{.path = folder, .is_synthetic = true};
}

// Whether the decoded frames are what --compare and finiteness ask for.
absl::StatusOr<cli::Exit> Judge(const StartupCommand& command,
                                const VaeStartupResult& result, cli::Io& io) {
  cli::Exit exit = cli::Exit::kOk;
  if (!result.sample.output->is_finite) {
    io.Note("the decoded frames hold NaN or infinity");
    exit = cli::Exit::kFinding;
  }
  if (result.sample.offload && !result.sample.offload->is_identical) {
    io.Note("a decode after an offload cycle differs from the first");
    exit = cli::Exit::kFinding;
  }
  if (!command.compare.empty()) {
    FF_ASSIGN_OR_RETURN(const FloatTensor expected,
                        ReadTensorFile(command.compare, "sample"));
    const TensorDifference difference = CompareTensors(
        *result.output, expected, {.rtol = command.rtol, .atol = command.atol});
    io.Note(absl::StrCat(command.compare, ": ", difference.ToString()));
    if (!difference.is_equal) exit = cli::Exit::kFinding;
  }
  return exit;
}

absl::StatusOr<cli::Exit> RunHere(const StartupCommand& command,
                                  GetVariable variable, cli::Io& io) {
  FF_ASSIGN_OR_RETURN(const Launch launch, ReadLaunch(variable));
  PhaseRecorder::Options recorder_options;
  if (command.start) recorder_options.origin_ns = command.start->best_ns();
  if (command.synchronize) {
    // Only once a context is there: a phase must not pay for another's set-up.
    recorder_options.synchronize = [ordinal = command.device.ordinal] {
      cuda::Runtime& runtime = cuda::GetRuntime();
      if (runtime.HasContext(ordinal)) (void)runtime.SynchronizeDevice();
    };
  }
  PhaseRecorder recorder(recorder_options);
  if (command.start) {
    recorder.Add({.name = "process.exec",
                  .start_ns = command.start->best_ns(),
                  .end_ns = recorder.NowNs()});
  }
  FF_ASSIGN_OR_RETURN(const TraceOptions trace_options,
                      ResolveTraceOptions(ReadTraceEnvironment(variable)));
  for (const std::string& warning : trace_options.warnings) io.Note(warning);
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<ActivationTracer> tracer,
                      ActivationTracer::Create(trace_options, ::getpid(),
                                               std::max(command.threads, 1)));
  std::deque<std::string> values;  // what ReadPerfSettings points into
  const PerfSettings perf_settings =
      ReadPerfSettings([&](const char* name) -> const char* {
        const std::optional<std::string> value = variable(name);
        return value ? values.emplace_back(*value).c_str() : nullptr;
      });
  VaeStartupResult result;
  {
    PhaseCollector collector(&recorder);
    cli::Progress progress(io.err, io.progress, "vae_startup");
    const absl::StatusOr<Model> model = RunPhase(
        "resolve_model", [&] { return ResolveModel(command, variable, io); });
    FF_RETURN_IF_ERROR(model.status());
    result = RunVaeStartup(
        {.model_path = model->path,
         .is_synthetic = model->is_synthetic,
         .device = command.device,
         .math = command.math,
         .threads = command.threads,
         .synchronize = command.synchronize,
         .overlaps = command.overlaps,
         .launch = launch,
         .joins_nccl = command.joins_nccl,
         .library_search =
             cuda::MakeLibrarySearch(variable("VIRTUAL_ENV").value_or(""),
                                     variable("CONDA_PREFIX").value_or(""),
                                     variable("PATH").value_or("")),
         .latent_file = command.latent_file,
         .latent_shape = command.latent_shape,
         .video = command.video,
         .seed = command.seed,
         .warm_decodes = command.warm_decodes,
         .offload_cycles = command.offload_cycles,
         .requested_cache = command.cache,
         .tracer = tracer.get(),
         .perf_settings = &perf_settings,
         .perf_log = command.is_launched ? nullptr : &io.err,
         .progress = [&](absl::string_view phase,
                         double done) { progress.Update(done, phase); },
         .is_cancelled = IsInterrupted});
  }
  for (const std::string& note : result.notes) io.Note(note);
  result.context.command = command.words;
  result.context.machine = ReadMachine();
  if (result.context.device_name.empty()) {
    result.context.device_name = result.context.machine.cpu_model;
  }
  result.sample.error = std::string(result.status.message());
  result.sample.start = command.start;
  result.sample.phases = recorder.Report(result.status);
  result.sample.process_wall_ns = result.sample.phases.recording_duration_ns;
  result.sample.usage = ReadResourceUsage();
  if (io.format == cli::Format::kText) {
    WriteStartupText(result.context, result.checkpoint, result.sample,
                     {.columns = io.columns, .colour = io.color}, io.out);
  }
  FF_RETURN_IF_ERROR(WriteResults(command, OneRun(result), io));
  FF_RETURN_IF_ERROR(result.status);
  if (!command.tensor_output.empty()) {
    FF_RETURN_IF_ERROR(
        WriteTensorFile(command.tensor_output, "sample", *result.output));
  }
  return Judge(command, result, io);
}

// Runs in processes of their own.
absl::StatusOr<cli::Exit> RunChildren(const StartupCommand& command,
                                      GetVariable variable, cli::Io& io) {
  FF_ASSIGN_OR_RETURN(const Model model, ResolveModel(command, variable, io));
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                      VaeFiles(model.path));
  std::vector<std::string> argv = {"/proc/self/exe"};
  for (std::string& flag : ChildFlags(command)) argv.push_back(std::move(flag));
  cli::Progress progress(io.err, io.progress, "runs");
  RepeatOptions options;
  options.argv = std::move(argv);
  options.runs = command.runs;
  options.prepare = [&] { return PrepareCache(command.cache, files); };
  options.is_cancelled = IsInterrupted;
  options.progress = [&](int done) {
    progress.Update(static_cast<double>(done) / command.runs);
  };
  FF_ASSIGN_OR_RETURN(const RepeatResult result, RepeatStartup(options));
  progress.Clear();
  if (io.format == cli::Format::kText) WriteRepeatText(result, io.out);
  FF_RETURN_IF_ERROR(WriteResults(command, result.document, io));
  if (IsInterrupted()) {
    return absl::CancelledError(absl::StrCat("interrupted after ",
                                             result.exit_codes.size(), " of ",
                                             command.runs, " runs"));
  }
  int worst = 0;
  for (const int code : result.exit_codes) worst = std::max(worst, code);
  return worst <= static_cast<int>(cli::Exit::kUnavailable)
             ? static_cast<cli::Exit>(worst)
             : cli::Exit::kTrouble;
}

}  // namespace

absl::Status ValidateStartupCommand(const StartupCommand& command) {
  const auto at_least = [](absl::string_view flag, int64_t value,
                           int64_t least) {
    return value >= least
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat(
                     "--", flag, " is ", value, "; expected at least ", least));
  };
  FF_RETURN_IF_ERROR(at_least("threads", command.threads, 0));
  // OpenMP would try to start them all, and not come back.
  constexpr int kMostThreads = 1024;
  if (command.threads > kMostThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--threads is ", command.threads, "; expected at most ", kMostThreads));
  }
  FF_RETURN_IF_ERROR(at_least("frames", command.video.frames, 1));
  FF_RETURN_IF_ERROR(at_least("height", command.video.height, 1));
  FF_RETURN_IF_ERROR(at_least("width", command.video.width, 1));
  FF_RETURN_IF_ERROR(at_least("warm_decodes", command.warm_decodes, 0));
  FF_RETURN_IF_ERROR(at_least("offload_cycles", command.offload_cycles, 0));
  FF_RETURN_IF_ERROR(at_least("runs", command.runs, 1));
  if (!(command.rtol >= 0) || !(command.atol >= 0)) {
    return absl::InvalidArgumentError("--rtol and --atol must not be negative");
  }
  if (!command.latent_file.empty() && !command.latent_shape.empty()) {
    return absl::InvalidArgumentError(
        "--latent and --latent_shape exclude each other");
  }
  if (command.runs > 1 && !command.tensor_output.empty()) {
    return absl::InvalidArgumentError(
        "--tensor_output takes one run; --runs is more");
  }
  return ValidateTensorPath(command.tensor_output);
}

std::vector<std::string> ChildFlags(const StartupCommand& command) {
  std::vector<std::string> flags = {
      "--format=json",
      "--quiet",
      absl::StrCat("--device=", cuda::DeviceSpecToString(command.device)),
      absl::StrCat("--math=", MathModeName(command.math)),
      absl::StrCat("--threads=", command.threads),
      absl::StrCat("--synchronize=", command.synchronize ? "true" : "false"),
      absl::StrCat("--overlap=", command.overlaps ? "true" : "false"),
      absl::StrCat("--frames=", command.video.frames),
      absl::StrCat("--height=", command.video.height),
      absl::StrCat("--width=", command.video.width),
      absl::StrCat("--seed=", command.seed),
      absl::StrCat("--warm_decodes=", command.warm_decodes),
      absl::StrCat("--process_group=", command.joins_nccl ? "nccl" : "none"),
      absl::StrCat("--offload_cycles=", command.offload_cycles),
      absl::StrCat("--cache=", command.cache)};
  const auto add_given = [&](absl::string_view name, const std::string& value) {
    if (!value.empty()) flags.push_back(absl::StrCat("--", name, "=", value));
  };
  add_given("model_path", command.model_path);
  add_given("latent_shape", command.latent_shape);
  add_given("latent", command.latent_file);
  add_given("tensor_output", command.tensor_output);
  if (!command.compare.empty()) {
    flags.push_back(absl::StrCat("--compare=", command.compare));
    flags.push_back(absl::StrCat("--rtol=", command.rtol));
    flags.push_back(absl::StrCat("--atol=", command.atol));
  }
  return flags;
}

absl::StatusOr<cli::Exit> RunStartupCommand(const StartupCommand& command,
                                            GetVariable variable, cli::Io& io) {
  const bool needs_processes = command.runs > 1 || command.cache != "as_is";
  return needs_processes && !command.is_launched
             ? RunChildren(command, variable, io)
             : RunHere(command, variable, io);
}

}  // namespace firstframe
