// Prints docs/trace_diff_cases.md: what trace_diff finds of bugs planted in a
// Wan VAE, and how often it fires on healthy pairs.
//
//   bazel run //lib/activation:trace_cases [-- SEEDS [FIRST]] >
//   docs/trace_diff_cases.md
//
// Six healthy pairs a seed; 36 seeds by default. Exits 1 when a pair fires.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/activation/trace_cases.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr uint64_t kBase = 1000000;  // seeds of the left side

constexpr CasePrecision kStudies[] = {CasePrecision::kFloat32,
                                      CasePrecision::kBFloat16};

absl::Status PrintBugs(const CaseRunner& runner) {
  absl::PrintF(
      "| bug | in | float32, eight | float32, all | bfloat16, eight | "
      "bfloat16, all |\n|---|---|---|---|---|---|\n");
  CaseTraces left[2];
  for (int p = 0; p < 2; ++p) {
    CaseInputs inputs = runner.Inputs(0);
    CaseRunner::MakeVariant(kStudies[p], kBase, &inputs);
    FF_ASSIGN_OR_RETURN(left[p], runner.Trace(inputs, kStudies[p]));
  }
  for (const PlantedBug& bug : PlantedBugs()) {
    std::string row = absl::StrCat("| ", bug.what, " | ", bug.module);
    if (bug.occurrence > 0) absl::StrAppend(&row, ", call ", bug.occurrence);
    for (int p = 0; p < 2; ++p) {
      // The bug sits in a healthy variant of its own, as a port's would.
      CaseInputs inputs = runner.Inputs(0);
      bug.plant(inputs);
      CaseRunner::MakeVariant(kStudies[p], 7, &inputs);
      FF_ASSIGN_OR_RETURN(const CaseTraces right,
                          runner.Trace(inputs, kStudies[p]));
      for (const auto field : {&CaseTraces::eight, &CaseTraces::all}) {
        FF_ASSIGN_OR_RETURN(const CaseOutcome outcome,
                            JudgeCase(left[p].*field, right.*field));
        const std::string grade = GradeOf(bug, outcome);
        absl::StrAppend(&row, " | ", grade);
        if (grade == "late") absl::StrAppend(&row, ": ", outcome.place);
      }
    }
    absl::PrintF("%s |\n", row);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Each seed has its own latent and four variants, two of each precision: one
// pair of each kind alone, four of both.
absl::StatusOr<int> PrintHealthy(const CaseRunner& runner, int first,
                                 int seeds) {
  int fired[3] = {}, counted[3] = {};
  std::string complaints;
  for (int seed = first; seed < first + seeds; ++seed) {
    std::string traces[4];
    for (int i = 0; i < 4; ++i) {
      const CasePrecision precision = kStudies[i / 2];
      CaseInputs inputs = runner.Inputs(seed);
      CaseRunner::MakeVariant(precision, kBase + 4 * seed + i, &inputs);
      FF_ASSIGN_OR_RETURN(CaseTraces both, runner.Trace(inputs, precision));
      traces[i] = std::move(both.all);
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = i + 1; j < 4; ++j) {
        const int kind = i / 2 != j / 2 ? 2 : i / 2;
        FF_ASSIGN_OR_RETURN(const CaseOutcome outcome,
                            JudgeCase(traces[i], traces[j]));
        ++counted[kind];
        fired[kind] += outcome.fired;
        if (outcome.fired) {
          absl::StrAppend(&complaints, "\n- seed ", seed, ", variants ", i,
                          " and ", j, ": ", outcome.explanation, "\n");
        }
      }
    }
    std::fprintf(stderr, "\r%d of %d seeds", seed - first + 1, seeds);
  }
  std::fprintf(stderr, "\n");
  const char* const names[] = {"float32 against float32",
                               "bfloat16 against bfloat16",
                               "float32 against bfloat16"};
  absl::PrintF("| healthy pairs | number | fired |\n|---|---|---|\n");
  int total = 0;
  for (int kind = 0; kind < 3; ++kind) {
    absl::PrintF("| %s | %d | %d |\n", names[kind], counted[kind], fired[kind]);
    total += fired[kind];
  }
  absl::PrintF("%s", complaints);
  return total;
}

absl::StatusOr<int> Run(int seeds, int first) {
  const CaseRunner runner;
  absl::PrintF(
      "# What trace_diff finds\n\n"
      "Made by `bazel run //lib/activation:trace_cases > "
      "docs/trace_diff_cases.md`; do not edit.\n\n"
      "Each bug is planted in the `small` Wan VAE (synthetic weights, three "
      "latent frames, 461 records) on\ntop of a healthy variant, and the trace "
      "compared, without flags, with that of another healthy\nvariant. "
      "A float32 variant moves each weight by at most one unit in the last "
      "place. A bfloat16 variant\nrounds each weight up or down at random and "
      "records outputs in bfloat16; the arithmetic between is\nfloat32, so it "
      "drifts less than a run that rounds every activation.\n\n"
      "`exact`: the first divergence is the module and the call of the bug. "
      "`late`: it is one behind, named.\n`eight` are FastVideo's statistics; "
      "`all` adds sketch, hashes and counts.\n\n");
  FF_RETURN_IF_ERROR(PrintBugs(runner));
  absl::PrintF(
      "\n## False alarms\n\nAll statistics; six pairs of four healthy variants "
      "on each of %d seeded latents.\n\n",
      seeds);
  return PrintHealthy(runner, first, seeds);
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  const auto fired = firstframe::Run(argc > 1 ? std::atoi(argv[1]) : 36,
                                     argc > 2 ? std::atoi(argv[2]) : 100);
  if (!fired.ok()) {
    std::fprintf(stderr, "trace_cases: %s\n",
                 std::string(fired.status().message()).c_str());
    return 2;
  }
  return *fired == 0 ? 0 : 1;
}
