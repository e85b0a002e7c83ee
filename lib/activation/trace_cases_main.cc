// Prints docs/trace_diff_cases.md: what trace_diff finds of bugs planted in a
// Wan VAE, and how often it fires on healthy pairs.
//
//   bazel run //lib/activation:trace_cases [-- SEEDS [FIRST]] >
//   docs/trace_diff_cases.md
//
// Six healthy pairs a seed, and six of three steps for every third; 36 seeds by
// default. Exits 1 when a pair fires.

#include <cstdio>
#include <cstdlib>
#include <map>
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

constexpr uint64_t kBase = 1000000;  // variants of the left side
constexpr uint64_t kPort = 7;        // the variant that bugs sit in

constexpr CasePrecision kPrecisions[] = {CasePrecision::kFloat32,
                                         CasePrecision::kBFloat16};
// What is compared with what.
constexpr std::pair<int, int> kStudies[] = {{0, 0}, {1, 1}, {0, 1}};

// A row of the table: both kinds of records in each study.
absl::StatusOr<std::string> GradeBug(const CaseRunner& runner,
                                     const PlantedBug& bug,
                                     const CaseTraces (&left)[2]) {
  std::string row = absl::StrCat("| ", bug.what, " | ", bug.module);
  if (bug.occurrence > 0) absl::StrAppend(&row, ", call ", bug.occurrence);
  CaseTraces right[2];
  for (int p = 0; p < 2; ++p) {
    FF_ASSIGN_OR_RETURN(
        right[p], runner.Run(kPrecisions[p], 0, kPort, &bug, bug.step >= 0));
  }
  for (const auto& [a, b] : kStudies) {
    for (const auto field : {&CaseTraces::eight, &CaseTraces::all}) {
      FF_ASSIGN_OR_RETURN(const CaseOutcome outcome,
                          JudgeCase(left[a].*field, right[b].*field));
      const std::string grade =
          GradeOf(bug, field == &CaseTraces::all, outcome);
      absl::StrAppend(&row, " | ", grade);
      if (grade == "late") absl::StrAppend(&row, ": ", outcome.place);
    }
  }
  return absl::StrCat(row, " |");
}

absl::Status PrintBugs(const CaseRunner& runner) {
  absl::PrintF(
      "| bug | in | float32, eight | all | bfloat16, eight | all | float32 "
      "against bfloat16, eight | all |\n|---|---|---|---|---|---|---|---|\n");
  CaseTraces left[2], left_of_steps[2];
  for (int p = 0; p < 2; ++p) {
    FF_ASSIGN_OR_RETURN(left[p],
                        runner.Run(kPrecisions[p], 0, kBase, nullptr, false));
    FF_ASSIGN_OR_RETURN(left_of_steps[p],
                        runner.Run(kPrecisions[p], 0, kBase, nullptr, true));
  }
  for (const PlantedBug& bug : PlantedBugs()) {
    FF_ASSIGN_OR_RETURN(
        const std::string row,
        GradeBug(runner, bug, bug.step >= 0 ? left_of_steps : left));
    absl::PrintF("%s\n", row);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Healthy pairs, by what was compared.
class FalseAlarms {
 public:
  explicit FalseAlarms(const CaseRunner& runner) : runner_(runner) {}

  // Four variants of one latent, two of each precision, make six pairs.
  absl::Status Add(int seed, bool has_steps) {
    CaseTraces traces[4];
    for (int i = 0; i < 4; ++i) {
      FF_ASSIGN_OR_RETURN(
          traces[i], runner_.Run(kPrecisions[i / 2], seed, kBase + 4 * seed + i,
                                 nullptr, has_steps));
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = i + 1; j < 4; ++j) {
        const std::string kind = absl::StrCat(
            kNames[i / 2], " against ", kNames[j / 2],
            has_steps ? absl::StrCat(", ", kCaseSteps, " steps") : "");
        FF_RETURN_IF_ERROR(Judge(
            kind, absl::StrCat("seed ", seed, ", variants ", i, " and ", j),
            traces[i], traces[j]));
      }
    }
    return absl::OkStatus();
  }

  void Print() const {
    absl::PrintF(
        "| healthy pairs | number | fired, eight | fired, all |\n"
        "|---|---|---|---|\n");
    int pairs = 0;
    for (const auto& [kind, count] : counts_) {
      absl::PrintF("| %s | %d | %d | %d |\n", kind, count.pairs,
                   count.fired_eight, count.fired_all);
      pairs += count.pairs;
    }
    absl::PrintF("| all | %d | | |\n%s", pairs, complaints_);
  }

  int fired() const {
    int sum = 0;
    for (const auto& [kind, count] : counts_) {
      sum += count.fired_eight + count.fired_all;
    }
    return sum;
  }

 private:
  static constexpr const char* kNames[] = {"float32", "bfloat16"};
  struct Count {
    int pairs = 0, fired_eight = 0, fired_all = 0;
  };

  absl::Status Judge(const std::string& kind, const std::string& which,
                     const CaseTraces& a, const CaseTraces& b) {
    Count& count = counts_[kind];
    ++count.pairs;
    FF_ASSIGN_OR_RETURN(const CaseOutcome eight, JudgeCase(a.eight, b.eight));
    FF_ASSIGN_OR_RETURN(const CaseOutcome all, JudgeCase(a.all, b.all));
    count.fired_eight += eight.fired;
    count.fired_all += all.fired;
    for (const CaseOutcome* const outcome : {&eight, &all}) {
      if (!outcome->fired) continue;
      absl::StrAppend(&complaints_, "\n- ", kind, ", ", which, ": ",
                      outcome->explanation, "\n");
    }
    return absl::OkStatus();
  }

  const CaseRunner& runner_;
  std::map<std::string, Count> counts_;
  std::string complaints_;
};

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
      "drifts less than a run that rounds every activation. Runs of steps "
      "decode one latent a\nstep with the same weights.\n\n"
      "`exact`: the first divergence is the module, the call and the step of "
      "the bug. `late`: it is one behind,\nnamed. `eight` are FastVideo's "
      "statistics; `all` adds sketch, hashes and counts, and a record of the\n"
      "latent: for a bug there that record is `exact`.\n\n");
  FF_RETURN_IF_ERROR(PrintBugs(runner));
  absl::PrintF(
      "\n## False alarms\n\nSix pairs of four healthy variants on each of %d "
      "seeded latents, and of runs of %d steps for every\nthird of them.\n\n",
      seeds, kCaseSteps);
  FalseAlarms alarms(runner);
  for (int seed = first; seed < first + seeds; ++seed) {
    FF_RETURN_IF_ERROR(alarms.Add(seed, false));
    if (seed % 3 == 0) FF_RETURN_IF_ERROR(alarms.Add(seed, true));
    std::fprintf(stderr, "\r%d of %d seeds", seed - first + 1, seeds);
  }
  std::fprintf(stderr, "\n");
  alarms.Print();
  return alarms.fired();
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
