// Runs of a Wan VAE with and without planted bugs, to see what trace_diff
// finds, misses and imagines. docs/trace_diff_cases.md has the result.
//
// A healthy variant differs as runs of the same model on other kernels or in
// bfloat16 do: each weight by one unit in its last place, or rounded to
// bfloat16 up or down at random (which is right on average), its outputs
// recorded in bfloat16.

#ifndef LIB_ACTIVATION_TRACE_CASES_H_
#define LIB_ACTIVATION_TRACE_CASES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/activation/planted_bugs.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe {

enum class CasePrecision { kFloat32, kBFloat16 };

// Steps of a run that has steps.
inline constexpr int kCaseSteps = 3;

// One run, recorded with FastVideo's eight statistics, and with ours as well,
// which also has the latent.
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
  absl::StatusOr<CaseTraces> Trace(
      const CaseInputs& inputs, CasePrecision precision,
      std::optional<int64_t> step = std::nullopt) const;
  // All of a run: latents `latent_seed`, weights of a healthy variant, and the
  // bug (null: none).
  absl::StatusOr<CaseTraces> Run(CasePrecision precision, uint64_t latent_seed,
                                 uint64_t variant_seed, const PlantedBug* bug,
                                 bool has_steps) const;

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

// "exact" at the place expected, "late" elsewhere behind, "missed".
// `has_inputs`: the traces record the latent.
std::string GradeOf(const PlantedBug& bug, bool has_inputs,
                    const CaseOutcome& outcome);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_CASES_H_
