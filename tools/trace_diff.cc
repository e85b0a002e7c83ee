// trace_diff: says where two activation traces first part.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/activation/compare.h"
#include "lib/activation/dump_source.h"
#include "lib/activation/map_presets.h"
#include "lib/activation/name_map.h"
#include "lib/activation/rank_files.h"
#include "lib/activation/report.h"
#include "lib/activation/trace_input.h"
#include "lib/base/edit_distance.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"

ABSL_FLAG(std::string, threshold, "auto",
          "Precision that explains differences; auto takes each record's "
          "dtype. exact: none is explained.");
ABSL_FLAG(std::string, control, "",
          "{FILE} A third trace: the left model once more, on another kernel, "
          "device or batch. Its distance from LEFT is what healthy means.");
ABSL_FLAG(double, coherent_jump, 8,
          "{X} Statistics fire at X times the level expected.");
ABSL_FLAG(double, energy_jump, 2.5,
          "{X} Sketches fire at X times the level expected.");
ABSL_FLAG(
    bool, grafted, false,
    "Every module of RIGHT was given LEFT's inputs, so that no error adds "
    "up with depth.");
ABSL_FLAG(double, energy_ceiling, 0.10,
          "{SHARE} Relative error of elements that no history excuses.");
ABSL_FLAG(double, abs_mean_ceiling, 0.05,
          "{SHARE} Relative change of abs_mean that no history excuses.");
ABSL_FLAG(std::string, map, "",
          "{FILE|MODEL} Rules from names on the left to names on the right: "
          "PATTERN => TARGET [I/N], or lines of FastVideo's "
          "param_names_mapping; or a model that --list_maps names, between "
          "whose names in diffusers and in FastVideo it translates, either "
          "way.");
ABSL_FLAG(std::string, map_right, "",
          "{FILE} The same, from names on the right.");
ABSL_FLAG(bool, list_maps, false, "List the models that --map knows.");
ABSL_FLAG(bool, map_suggest, false,
          "Print rules that would align names which are on one side alone.");
ABSL_FLAG(bool, accept_fuzzy, false,
          "Let pairs that are aligned by order alone count as a pass.");
ABSL_FLAG(std::string, run, "",
          "{RUN} Compare this run of each file, from 0 or by its \"run\" key; "
          "the last one when empty.");
ABSL_FLAG(int, rank, -1, "{N} Compare this rank alone; -1: all that match.");
ABSL_FLAG(bool, merge_ranks, false,
          "Merge the ranks' records: sums, counts and hashes add.");
ABSL_FLAG(int64_t, max_unmatched, 0,
          "{N} Records without counterpart, both sides, that are tolerated.");
ABSL_FLAG(bool, lenient, false,
          "Compare what is left of a damaged file instead of refusing it.");
ABSL_FLAG(bool, first, false,
          "Stop at the first divergence; reads little more than its prefix.");
ABSL_FLAG(bool, explain, false, "Print one sentence with the evidence alone.");
ABSL_FLAG(int, rows, 10, "{N} Rows of the table of what fired.");
ABSL_FLAG(bool, limits, false,
          "In text: the smallest error that would be seen, for every "
          "sub-operation.");
ABSL_FLAG(bool, all_rows, false,
          "With --format=jsonl: a record of every pair.");
ABSL_FLAG(std::string, html, "",
          "{FILE} Also write a page: error over depth, worst layers.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "trace_diff";
  tool.summary =
      "Says where two activation traces first compute different numbers.";
  tool.arguments = "LEFT RIGHT";
  tool.description =
      "Reads traces that FastVideo's hook, trace_dump or vae_startup wrote "
      "(JSONL; gzip and zstd are recognised; '-' reads standard input; a glob "
      "names the files of several ranks), finds "
      "each record's counterpart, and judges every pair by how far it stands "
      "above the same sub-operation at earlier depths, not by a fixed "
      "percentage. docs/trace_diff.md explains the rule.";
  tool.formats = {cli::Format::kText, cli::Format::kJsonl,
                  cli::Format::kGithub};
  tool.has_color = true;
  tool.groups = {
      {"What differs",
       {"threshold", "control", "grafted", "coherent_jump", "energy_jump",
        "energy_ceiling", "abs_mean_ceiling"}},
      {"What is compared with what",
       {"map", "map_right", "list_maps", "map_suggest", "accept_fuzzy", "run",
        "rank", "merge_ranks", "max_unmatched", "lenient"}},
      {"What is shown",
       {"first", "explain", "rows", "limits", "all_rows", "html"}}};
  tool.choices = {
      {"threshold", {"auto", "exact", "fp32", "tf32", "fp16", "bf16"}}};
  tool.exits = {
      {cli::Exit::kOk,
       "the traces are the same, within what precision explains"},
      {cli::Exit::kFinding, "they differ; the first divergence is named"},
      {cli::Exit::kTrouble,
       "could not answer: usage, I/O, a damaged file, nothing in common, "
       "records without counterpart"}};
  tool.examples = {
      {"trace_diff reference.jsonl port.jsonl",
       "which layer of the port is wrong?"},
      {"trace_diff --map=wan diffusers.jsonl fastvideo.jsonl",
       "the same model in two repositories"},
      {"trace_diff --control=again.jsonl reference.jsonl port.jsonl",
       "judge by how much the reference differs from itself"},
      {"trace_diff --format=github --html=diff.html a.jsonl b.jsonl",
       "in a workflow"}};
  return tool;
}

// The path to open.
absl::StatusOr<std::string> ClaimInput(const std::string& path) {
  if (path == "-") FF_RETURN_IF_ERROR(cli::ClaimStdin());
  return cli::ResolvePath(path);
}

absl::StatusOr<NameMap> ReadMap(const std::string& path) {
  if (path.empty()) return NameMap();
  auto read = cli::ReadInput(path);
  if (absl::IsNotFound(read.status())) {
    std::vector<std::string> models;
    for (const MapPreset& preset : MapPresets()) {
      models.emplace_back(preset.name);
    }
    const auto near = NearestName(path, models);
    return absl::NotFoundError(
        absl::StrCat(read.status().message(), ", and no model is called that (",
                     near ? absl::StrCat("did you mean '", *near, "'?")
                          : "--list_maps lists them",
                     ")"));
  }
  FF_ASSIGN_OR_RETURN(const std::string text, std::move(read));
  auto map = NameMap::Parse(text);
  if (!map.ok()) return Annotate(map.status(), path);
  return map;
}

void ListMaps(std::ostream& out) {
  for (const MapPreset& preset : MapPresets()) {
    out << absl::StrFormat("%-17s  %s\n", std::string(preset.name),
                           std::string(preset.summary));
  }
}

// The maps of --map and --map_right.
struct Maps {
  NameMap left, right;
  bool is_preset = false;  // `left` serves either side

  static absl::StatusOr<Maps> FromFlags() {
    Maps maps;
    const std::string name = absl::GetFlag(FLAGS_map);
    if (const auto preset = FindMapPreset(name)) {
      if (!absl::GetFlag(FLAGS_map_right).empty()) {
        return cli::UsageError("--map_right goes with a file as --map");
      }
      FF_ASSIGN_OR_RETURN(maps.left, NameMap::Parse(preset->text));
      maps.is_preset = true;
      return maps;
    }
    FF_ASSIGN_OR_RETURN(maps.left, ReadMap(name));
    FF_ASSIGN_OR_RETURN(maps.right, ReadMap(absl::GetFlag(FLAGS_map_right)));
    return maps;
  }

  void Use(AlignOptions* options) const {
    if (is_preset) {
      options->preset = &left;
      return;
    }
    options->map_a = left.empty() ? nullptr : &left;
    options->map_b = right.empty() ? nullptr : &right;
  }
};

absl::StatusOr<DivergenceOptions> ReadThresholds() {
  DivergenceOptions options;
  FF_ASSIGN_OR_RETURN(options.profile,
                      ParseThresholdProfile(absl::GetFlag(FLAGS_threshold)));
  // Without history the same caution is kept in proportion.
  const double coherent = absl::GetFlag(FLAGS_coherent_jump);
  const double energy = absl::GetFlag(FLAGS_energy_jump);
  options.coherent = {coherent, 1.5 * coherent};
  options.energy = {energy, 1.5 * energy};
  options.is_grafted = absl::GetFlag(FLAGS_grafted);
  options.energy_ceiling = absl::GetFlag(FLAGS_energy_ceiling);
  options.abs_mean_ceiling = absl::GetFlag(FLAGS_abs_mean_ceiling);
  if (!(coherent > 0) || !(energy > 0) || !(options.energy_ceiling > 0) ||
      !(options.abs_mean_ceiling > 0)) {
    return cli::UsageError("jumps and ceilings must be above 0");
  }
  return options;
}

absl::Status WritePage(const Comparison& comparison, const std::string& path) {
  return WriteOutputFile(cli::ResolvePath(path), RenderHtml(comparison));
}

void Write(const Comparison& comparison, cli::Io& io) {
  ReportOptions options;
  options.rows = absl::GetFlag(FLAGS_rows);
  options.all_rows = absl::GetFlag(FLAGS_all_rows);
  options.limits = absl::GetFlag(FLAGS_limits);
  options.color = io.color;
  options.columns = io.columns;
  if (absl::GetFlag(FLAGS_map_suggest)) {
    io.out << SuggestedMap(comparison.alignment.suggestions);
  } else if (absl::GetFlag(FLAGS_explain)) {
    io.out << Explain(comparison) << "\n";
  } else if (io.format == cli::Format::kJsonl) {
    WriteJsonl(comparison, options, io.out);
  } else if (io.format == cli::Format::kGithub) {
    WriteGithub(comparison, io.out);
  } else {
    WriteText(comparison, options, io.out);
  }
}

// A path, or a glob that names the files of several ranks.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  if (path.find_first_of("*?[") == std::string::npos) {
    return std::vector<std::string>{path};
  }
  return ExpandInputs({path});
}

absl::StatusOr<std::pair<TraceInput, TraceInput>> OpenBoth(
    const std::string& left, const std::string& right) {
  FF_ASSIGN_OR_RETURN(const auto files_a, FilesOf(left));
  FF_ASSIGN_OR_RETURN(const auto files_b, FilesOf(right));
  if (files_a.size() == 1 && files_b.size() == 1) {
    return OpenTracePair(files_a[0], files_b[0]);
  }
  const auto open = [](const std::vector<std::string>& files,
                       const std::string& name) {
    return files.size() == 1 ? TraceInput::Open(files[0])
                             : OpenRankFiles(files, name);
  };
  FF_ASSIGN_OR_RETURN(TraceInput a, open(files_a, left));
  FF_ASSIGN_OR_RETURN(TraceInput b, open(files_b, right));
  return std::pair(std::move(a), std::move(b));
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (absl::GetFlag(FLAGS_list_maps)) {
    ListMaps(io.out);
    return cli::Exit::kOk;
  }
  if (arguments.size() != 2) {
    return cli::UsageError("expected two traces: LEFT RIGHT");
  }
  CompareOptions options;
  FF_ASSIGN_OR_RETURN(options.divergence, ReadThresholds());
  FF_ASSIGN_OR_RETURN(const Maps maps, Maps::FromFlags());
  maps.Use(&options.align);
  options.align.run = absl::GetFlag(FLAGS_run);
  if (const int rank = absl::GetFlag(FLAGS_rank); rank >= 0) {
    options.align.rank = rank;
  }
  options.align.merge_ranks = absl::GetFlag(FLAGS_merge_ranks);
  options.lenient = absl::GetFlag(FLAGS_lenient);
  options.accept_fuzzy = absl::GetFlag(FLAGS_accept_fuzzy);
  options.max_unmatched = absl::GetFlag(FLAGS_max_unmatched);
  options.first_only = absl::GetFlag(FLAGS_first);
  if (absl::GetFlag(FLAGS_all_rows) || !absl::GetFlag(FLAGS_html).empty()) {
    options.equal_lines = EqualLines::kRows;
  }
  FF_ASSIGN_OR_RETURN(const std::string left_path, ClaimInput(arguments[0]));
  FF_ASSIGN_OR_RETURN(const std::string right_path, ClaimInput(arguments[1]));
  FF_ASSIGN_OR_RETURN(const auto inputs, OpenBoth(left_path, right_path));
  const auto& [left, right] = inputs;
  std::optional<ControlLevels> control;
  if (const std::string path = absl::GetFlag(FLAGS_control); !path.empty()) {
    FF_ASSIGN_OR_RETURN(const std::string third_path, ClaimInput(path));
    FF_ASSIGN_OR_RETURN(const TraceInput third, TraceInput::Open(third_path));
    AlignOptions align = options.align;
    align.map_a = align.map_b = align.preset = nullptr;
    FF_ASSIGN_OR_RETURN(control, ReadControl(left, third, align));
    options.divergence.control = &*control;
  }

  FF_ASSIGN_OR_RETURN(const Comparison comparison,
                      CompareTraces(left, right, options));
  if (io.format == cli::Format::kText) {
    for (const std::string& warning : comparison.warnings) io.Note(warning);
  }
  Write(comparison, io);
  if (const std::string path = absl::GetFlag(FLAGS_html); !path.empty()) {
    FF_RETURN_IF_ERROR(WritePage(comparison, path));
  }
  if (comparison.verdict == Verdict::kUndecided) {
    for (const std::string& trouble : comparison.trouble) io.Note(trouble);
    return cli::Exit::kTrouble;
  }
  return comparison.verdict == Verdict::kDiffer ? cli::Exit::kFinding
                                                : cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
