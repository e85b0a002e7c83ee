// Reads the goldens of testdata/wan_vae.

#ifndef LIB_WAN_VAE_TESTDATA_H_
#define LIB_WAN_VAE_TESTDATA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe::testing {

// Returns the path of `name` in testdata/wan_vae.
std::string VaeTestdata(absl::string_view name);

struct GoldenParameter {
  std::string name;
  Shape shape;
  std::string sha256;
};
std::vector<GoldenParameter> ReadGoldenParameters(absl::string_view preset);

// A module's output as PyTorch's forward hook saw it.
struct GoldenOutput {
  std::string module;
  Shape shape;
  double abs_mean = 0, sum = 0, min = 0, max = 0;
};
std::vector<GoldenOutput> ReadGoldenOutputs(
    absl::string_view name = "small_decode_modules.jsonl");

// Reads a safetensors file of F32 tensors.
std::map<std::string, FloatTensor> ReadGoldenTensors(absl::string_view name);

// Returns ||found - expected|| / ||expected||, in double; infinity when the
// shapes differ.
double RelativeL2(const FloatTensor& found, const FloatTensor& expected);

}  // namespace firstframe::testing

#endif  // LIB_WAN_VAE_TESTDATA_H_
