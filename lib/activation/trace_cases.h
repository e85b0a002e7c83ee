// Bugs planted in a Wan VAE, and healthy variants of it, to see what trace_diff
// finds, misses and imagines. docs/trace_diff_cases.md has the result.
//
// A healthy variant differs as runs of the same model on other kernels or in
// bfloat16 do: each weight by one unit in its last place, or rounded to
// bfloat16 up or down at random (which is right on average), its outputs
// recorded in bfloat16.

#ifndef LIB_ACTIVATION_TRACE_CASES_H_
#define LIB_ACTIVATION_TRACE_CASES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/tiling.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe {

enum class CasePrecision { kFloat32, kBFloat16 };

// Weights by parameter, and the latent, of one run.
struct CaseInputs {
  const ModuleTree* tree = nullptr;
  std::vector<FloatTensor> weights;
  FloatTensor latent;

  FloatTensor& Weight(absl::string_view name);  // stops when there is none
};

// A planted bug and where trace_diff should say it is.
struct PlantedBug {
  std::string what;
  std::string module;
  int occurrence = 0;
  std::function<void(CaseInputs&)> plant;
};
std::vector<PlantedBug> PlantedBugs();

// One run, recorded with FastVideo's eight statistics, and with ours as well.
struct CaseTraces {
  std::string eight;
  std::string all;
};

// Runs the "small" VAE on synthetic weights and seeded latents of three frames.
class CaseRunner {
 public:
  CaseRunner();

  // Synthetic weights, latent `seed`.
  CaseInputs Inputs(uint64_t seed) const;
  // Makes the weights of a healthy variant.
  static void MakeVariant(CasePrecision precision, uint64_t seed,
                          CaseInputs* inputs);
  // Returns the traces of one decode. The float32 model runs in both
  // precisions; bfloat16 records each output rounded.
  absl::StatusOr<CaseTraces> Trace(const CaseInputs& inputs,
                                   CasePrecision precision) const;

 private:
  WanVaeConfig config_;
  ModuleTree tree_;
};

// What trace_diff makes of two traces.
struct CaseOutcome {
  bool fired = false;
  std::string place;  // of the first divergence
  std::string explanation;
};
absl::StatusOr<CaseOutcome> JudgeCase(std::string left, std::string right);

// "exact" at the module and occurrence expected, "late" elsewhere behind,
// "missed".
std::string GradeOf(const PlantedBug& bug, const CaseOutcome& outcome);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_CASES_H_
