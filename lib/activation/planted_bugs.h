// Bugs to plant in a Wan VAE: what engineers get wrong when they port one.

#ifndef LIB_ACTIVATION_PLANTED_BUGS_H_
#define LIB_ACTIVATION_PLANTED_BUGS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

// Weights by parameter, and the latent, of one decode.
struct CaseInputs {
  const ModuleTree* tree = nullptr;
  std::vector<FloatTensor> weights;
  FloatTensor latent;

  FloatTensor& Weight(absl::string_view name);  // stops when there is none
};

// A bug, and where trace_diff should say it is.
struct PlantedBug {
  std::string what;
  std::string module;
  int occurrence = 0;
  // Of a run of three steps, the only one with the bug; -1: a run of one decode
  // without steps.
  int step = -1;
  // In the latent: a trace that records it should name it, and one that does
  // not, the first module.
  bool in_latent = false;
  std::function<void(CaseInputs&)> plant;
};
std::vector<PlantedBug> PlantedBugs();

}  // namespace firstframe

#endif  // LIB_ACTIVATION_PLANTED_BUGS_H_
