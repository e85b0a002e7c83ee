#include "lib/wan_vae/cpu_test_model.h"

#include "gtest/gtest.h"
#include "lib/tensor/shape.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe::testing {

FloatTensor SyntheticParameter(const ParameterSpec& spec) {
  FloatTensor tensor = {.shape = spec.shape};
  tensor.values.resize(*CheckedNumElements(spec.shape));
  FillSynthetic(spec.name, spec.shape, 0, absl::MakeSpan(tensor.values));
  return tensor;
}

std::unique_ptr<CpuWanVae> LoadSyntheticModel(const char* preset, int threads) {
  auto model = *BuildCpuWanVae(*WanVaePreset(preset), {.threads = threads});
  EXPECT_THAT(model->AllocateParameters(), IsOk());
  const auto& parameters = model->tree().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_THAT(
        model->AssignParameter(static_cast<int>(i),
                               ViewOf(SyntheticParameter(parameters[i]))),
        IsOk());
  }
  EXPECT_THAT(model->Finalize(), IsOk());
  return model;
}

}  // namespace firstframe::testing
