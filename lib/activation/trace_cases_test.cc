// A small share of docs/trace_diff_cases.md, so that it stays true.

#include "lib/activation/trace_cases.h"

#include <map>
#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

class TraceCases : public ::testing::Test {
 protected:
  // The outcome of a pair whose right side has `bug` planted (null: none).
  CaseOutcome Outcome(CasePrecision precision, uint64_t seed,
                      const PlantedBug* bug, bool has_steps = false) {
    std::string& reference = references_[{precision, seed, has_steps}];
    if (reference.empty()) {
      reference =
          runner_.Run(precision, seed, 1000 + seed, nullptr, has_steps)->all;
    }
    return *JudgeCase(
        reference, runner_.Run(precision, seed, seed + 1, bug, has_steps)->all);
  }

  const CaseRunner runner_;
  std::map<std::tuple<CasePrecision, uint64_t, bool>, std::string> references_;
};

TEST_F(TraceCases, HealthyPairsDoNotFire) {
  for (const CasePrecision precision :
       {CasePrecision::kFloat32, CasePrecision::kBFloat16}) {
    for (uint64_t seed = 0; seed < 2; ++seed) {
      const CaseOutcome outcome = Outcome(precision, seed, nullptr, seed == 1);
      EXPECT_FALSE(outcome.fired) << outcome.explanation;
    }
  }
}

TEST_F(TraceCases, EveryBugIsNamedExactlyInFloat32) {
  for (const PlantedBug& bug : PlantedBugs()) {
    const CaseOutcome outcome =
        Outcome(CasePrecision::kFloat32, 0, &bug, bug.step >= 0);
    EXPECT_EQ(GradeOf(bug, true, outcome), "exact")
        << bug.what << ": " << outcome.explanation;
  }
}

TEST_F(TraceCases, LargeBugsAreFoundInBFloat16) {
  for (const PlantedBug& bug : PlantedBugs()) {
    if (bug.what != "convolution x1.02" && bug.what != "one NaN weight" &&
        bug.what != "kernel rows and columns swapped") {
      continue;
    }
    const CaseOutcome outcome = Outcome(CasePrecision::kBFloat16, 0, &bug);
    EXPECT_EQ(GradeOf(bug, true, outcome), "exact")
        << bug.what << ": " << outcome.explanation;
  }
}

}  // namespace
}  // namespace firstframe
