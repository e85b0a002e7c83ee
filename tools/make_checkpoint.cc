// make_checkpoint: writes checkpoints of synthetic weights.

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/byte_size.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/base/version.h"
#include "lib/cli/input.h"
#include "lib/cli/progress.h"
#include "lib/cli/tool.h"
#include "lib/tensor/dtype.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/parallel.h"
#include "lib/wan_vae/synthetic_checkpoint.h"

ABSL_FLAG(std::string, out, "", "{DIR} Folder to write into; it is made.");
ABSL_FLAG(std::string, config, "",
          "{NAME|FILE} Write a Wan VAE: tiny (55 KB), small (14 MB), wan21 "
          "(508 MB, the published size), or a config.json.");
ABSL_FLAG(std::string, names, "diffusers",
          "Names of the VAE's tensors: Diffusers' or the original "
          "repository's.");
ABSL_FLAG(int, tensors, 0,
          "Instead of a VAE, write this many tensors of about equal size.");
ABSL_FLAG(std::string, bytes, "",
          "{SIZE} Of all those tensors together: 3150000000, 3.15GB, 64MiB.");
ABSL_FLAG(int, shards, 1, "Files to split the tensors into.");
ABSL_FLAG(std::string, dtype, "F32", "Element type.");
ABSL_FLAG(int, threads, 0, "Threads that make the values; 0: all.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "make_checkpoint";
  tool.summary = "Writes a checkpoint of synthetic, reproducible weights.";
  tool.description =
      "A VAE becomes a Diffusers component folder: config.json and "
      "diffusion_pytorch_model.safetensors, or shards and their index. Values "
      "follow from the tensors' names alone, so every machine and language "
      "makes the same bits (docs/design.md, \"Synthetic checkpoints\"). With "
      "--tensors and --bytes the folder holds model.safetensors instead, for "
      "measuring how fast weights load.";
  tool.formats = {cli::Format::kText, cli::Format::kJson};
  tool.groups = {{"What", {"config", "names", "tensors", "bytes"}},
                 {"Where and how", {"out", "shards", "dtype", "threads"}}};
  tool.choices = {{"names", {"diffusers", "original"}},
                  {"dtype", {"F32", "BF16", "F16", "F64"}}};
  tool.exits = {{cli::Exit::kOk, "the checkpoint is written"},
                {cli::Exit::kTrouble, "it could not be written"}};
  tool.examples = {
      {"make_checkpoint --config=wan21 --out=vae",
       "a VAE of the published size"},
      {"make_checkpoint --config=small --shards=3 --dtype=BF16 --out=vae",
       "half the bytes, three files and an index"},
      {"make_checkpoint --tensors=330 --bytes=3.15GB --out=big",
       "something to load"}};
  return tool;
}

// An interrupt ends the work between tensors, so that no half file stays.
volatile std::sig_atomic_t interrupted = 0;
void OnInterrupt(int) { interrupted = 1; }

absl::StatusOr<WanVaeConfig> ReadConfig(const std::string& value) {
  if (value == "-" || value.find_first_of("./") != std::string::npos) {
    FF_ASSIGN_OR_RETURN(const std::string text, cli::ReadInput(value));
    return ParseWanVaeConfig(text, value == "-" ? "standard input" : value);
  }
  absl::StatusOr<WanVaeConfig> preset = WanVaePreset(value);
  if (!preset.ok()) {
    return cli::UsageError(absl::StrCat(
        "--config=", value, ": expected tiny, small, wan21 or a config.json"));
  }
  return preset;
}

absl::StatusOr<SyntheticResult> Make(const std::string& folder,
                                     const SyntheticOptions& options) {
  const std::string config_name = absl::GetFlag(FLAGS_config);
  if (!config_name.empty()) {
    FF_ASSIGN_OR_RETURN(const WanVaeConfig config, ReadConfig(config_name));
    return WriteSyntheticVae(folder, config,
                             absl::GetFlag(FLAGS_names) == "original", options);
  }
  const absl::StatusOr<uint64_t> bytes =
      ParseByteSize(absl::GetFlag(FLAGS_bytes));
  if (!bytes.ok()) {
    return cli::UsageError(absl::StrCat("--bytes: ", bytes.status().message()));
  }
  const auto specs =
      PlanUniformTensors(absl::GetFlag(FLAGS_tensors), *bytes, options.dtype);
  if (!specs.ok()) return cli::UsageError(specs.status().message());
  return WriteSyntheticTensors(folder, "model", *specs, options);
}

void WriteResult(const SyntheticResult& result, cli::Io& io) {
  if (io.format == cli::Format::kText) {
    for (const std::string& path : result.paths) io.out << path << '\n';
    io.out << result.num_tensors << " tensors, " << result.size_bytes
           << " bytes\n";
    return;
  }
  const BuildInfo build = GetBuildInfo();
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  json.BeginObject();
  json.Key("schema").String("firstframe.make_checkpoint/1");
  json.Key("tool").BeginObject();
  json.Key("name").String(io.tool);
  json.Key("version").String(build.version);
  json.Key("commit").String(build.commit);
  json.EndObject();
  json.Key("paths").BeginArray();
  for (const std::string& path : result.paths) json.String(path);
  json.EndArray();
  json.Key("num_tensors").Int(result.num_tensors);
  json.Key("size_bytes").Uint(result.size_bytes);
  json.EndObject();
  io.out << text << '\n';
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (!arguments.empty()) {
    return cli::UsageError(
        absl::StrCat("unexpected argument '", arguments[0], "'"));
  }
  const bool has_config = !absl::GetFlag(FLAGS_config).empty();
  const bool has_tensors = cli::WasGiven("tensors") || cli::WasGiven("bytes");
  if (has_config == has_tensors) {
    return cli::UsageError("expected --config, or --tensors with --bytes");
  }
  if (has_tensors && absl::GetFlag(FLAGS_tensors) < 1) {
    return cli::UsageError("--tensors: expected at least 1");
  }
  if (absl::GetFlag(FLAGS_out).empty())
    return cli::UsageError("expected --out=DIR");
  if (absl::GetFlag(FLAGS_shards) < 1) {
    return cli::UsageError("--shards: expected at least 1");
  }
  if (absl::GetFlag(FLAGS_threads) < 0) {
    return cli::UsageError("--threads: expected 0 or more");
  }
  SetComputeThreads(absl::GetFlag(FLAGS_threads));
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  cli::Progress progress(io.err, io.progress, "writing");
  const SyntheticOptions options = {
      .num_shards = absl::GetFlag(FLAGS_shards),
      .dtype = *ParseDType(absl::GetFlag(FLAGS_dtype)),
      .progress = [&](double share) { progress.Update(share); },
      .is_cancelled = [] { return interrupted != 0; }};
  const std::string folder = cli::ResolvePath(absl::GetFlag(FLAGS_out));
  FF_ASSIGN_OR_RETURN(const SyntheticResult result, Make(folder, options));
  progress.Clear();
  WriteResult(result, io);
  return cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
