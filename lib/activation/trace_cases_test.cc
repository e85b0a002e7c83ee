// A small share of docs/trace_diff_cases.md, so that it stays true.

#include "lib/activation/trace_cases.h"

#include <map>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

class TraceCases : public ::testing::Test {
 protected:
  // The outcome of a pair whose right side has `bug` planted (null: none).
  CaseOutcome Outcome(CasePrecision precision, uint64_t seed,
                      const PlantedBug* bug) {
    std::string& reference = references_[{precision, seed}];
    if (reference.empty()) {
      CaseInputs left = runner_.Inputs(seed);
      CaseRunner::MakeVariant(precision, 1000 + seed, &left);
      reference = runner_.Trace(left, precision)->all;
    }
    CaseInputs right = runner_.Inputs(seed);
    if (bug != nullptr) bug->plant(right);
    CaseRunner::MakeVariant(precision, seed + 1, &right);
    return *JudgeCase(reference, runner_.Trace(right, precision)->all);
  }

  const CaseRunner runner_;
  std::map<std::pair<CasePrecision, uint64_t>, std::string> references_;
};

TEST_F(TraceCases, HealthyPairsDoNotFire) {
  for (const CasePrecision precision :
       {CasePrecision::kFloat32, CasePrecision::kBFloat16}) {
    for (uint64_t seed = 0; seed < 2; ++seed) {
      const CaseOutcome outcome = Outcome(precision, seed, nullptr);
      EXPECT_FALSE(outcome.fired) << outcome.explanation;
    }
  }
}

TEST_F(TraceCases, EveryBugIsNamedExactlyInFloat32) {
  for (const PlantedBug& bug : PlantedBugs()) {
    const CaseOutcome outcome = Outcome(CasePrecision::kFloat32, 0, &bug);
    EXPECT_EQ(GradeOf(bug, outcome), "exact")
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
    EXPECT_EQ(GradeOf(bug, outcome), "exact")
        << bug.what << ": " << outcome.explanation;
  }
}

}  // namespace
}  // namespace firstframe
