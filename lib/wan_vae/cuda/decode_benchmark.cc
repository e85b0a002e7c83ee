// decode_benchmark: on a GPU, times decodes and encodes of the published
// Wan 2.1 VAE at 480 x 832 in every math mode, and shows which layers the time
// goes to.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/status_macros.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/cuda/cuda_wan_vae.h"
#include "lib/wan_vae/cuda/math_mode.h"
#include "lib/wan_vae/synthetic.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {
namespace {

using cuda::MathMode;

double Seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

FloatTensor Synthetic(const std::string& name, const Shape& shape) {
  FloatTensor tensor = {.shape = shape};
  tensor.values.resize(*CheckedNumElements(shape));
  FillSynthetic(name, shape, 0, absl::MakeSpan(tensor.values));
  return tensor;
}

absl::StatusOr<std::unique_ptr<CudaWanVae>> Load(
    const std::string& preset, const CudaWanVaeOptions& options) {
  FF_ASSIGN_OR_RETURN(const WanVaeConfig config, WanVaePreset(preset));
  FF_ASSIGN_OR_RETURN(auto model, BuildCudaWanVae(config, options));
  FF_RETURN_IF_ERROR(model->AllocateParameters());
  const auto& parameters = model->tree().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const FloatTensor value =
        Synthetic(parameters[i].name, parameters[i].shape);
    FF_RETURN_IF_ERROR(
        model->AssignParameter(static_cast<int>(i), ViewOf(value)));
  }
  FF_RETURN_IF_ERROR(model->Finalize());
  return model;
}

// The first one also uploads and packs the encoder's parameters.
absl::Status TimeEncode(const std::string& name, CudaWanVae& model) {
  const FloatTensor video = Synthetic("video", {1, 3, 9, 480, 832});
  for (int i = 0; i < 4; ++i) {
    const double before = Seconds();
    FF_RETURN_IF_ERROR(model.Encode(ViewOf(video), {}).status());
    std::printf(
        "%s: encode of 9 frames wall %.4f s, device %.4f s, %.1f TFLOP, peak "
        "%.2f GiB\n",
        name.c_str(), Seconds() - before, model.LastRunDeviceNs() * 1e-9,
        model.LastRunFlops() * 1e-12, model.PeakDeviceBytes() / 1073741824.0);
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status TimeMode(MathMode mode) {
  const std::string name(cuda::MathModeName(mode));
  const double start = Seconds();
  FF_ASSIGN_OR_RETURN(auto model, Load("wan21", {.math = mode}));
  const FloatTensor latent = Synthetic("latent", {1, 16, 3, 60, 104});
  const double loaded = Seconds();
  FF_RETURN_IF_ERROR(model->Decode(ViewOf(latent), {}).status());
  const double first = Seconds();
  const int64_t first_ns = model->LastRunDeviceNs();
  double best = 1e9;
  int64_t best_ns = int64_t{1} << 60;
  for (int i = 0; i < 5; ++i) {
    const double before = Seconds();
    FF_RETURN_IF_ERROR(model->Decode(ViewOf(latent), {}).status());
    best = std::min(best, Seconds() - before);
    best_ns = std::min(best_ns, model->LastRunDeviceNs());
  }
  std::printf(
      "%s: build+load %.3f s, first decode %.3f s (device %.3f), warm wall "
      "%.4f s, warm device %.4f s, %.1f TFLOP at %.0f TFLOP/s, peak %.2f GiB, "
      "planned %.2f GiB\n",
      name.c_str(), loaded - start, first - loaded, first_ns * 1e-9, best,
      best_ns * 1e-9, model->LastRunFlops() * 1e-12,
      model->LastRunFlops() / best_ns * 1e-3,
      model->PeakDeviceBytes() / 1073741824.0,
      (model->PlannedDecodeBytes(latent.shape) + model->ParameterBytes()) /
          1073741824.0);
  model->TimeLayers(true);
  FF_RETURN_IF_ERROR(model->Decode(ViewOf(latent), {}).status());
  std::vector<LayerTime> times = model->LastLayerTimes();
  model->TimeLayers(false);
  std::sort(times.begin(), times.end(),
            [](const LayerTime& a, const LayerTime& b) {
              return a.device_ns > b.device_ns;
            });
  for (size_t i = 0; i < times.size() && i < 40; ++i) {
    std::printf("  %-44s %8.3f ms %4d launches %7.1f TFLOP/s\n",
                model->tree().modules[times[i].module].name.c_str(),
                times[i].device_ns * 1e-6, times[i].launches,
                times[i].flops / times[i].device_ns * 1e-3);
  }
  const FloatTensor longer = Synthetic("latent", {1, 16, 21, 60, 104});
  for (int i = 0; i < 2; ++i) {
    const double before = Seconds();
    FF_RETURN_IF_ERROR(model->Decode(ViewOf(longer), {}).status());
    std::printf("%s: 81 frames wall %.3f s, device %.3f s, peak %.2f GiB\n",
                name.c_str(), Seconds() - before,
                model->LastRunDeviceNs() * 1e-9,
                model->PeakDeviceBytes() / 1073741824.0);
  }
  return TimeEncode(name, *model);
}

}  // namespace
}  // namespace firstframe

int main() {
  using firstframe::cuda::MathMode;
  for (const MathMode mode :
       {MathMode::kFp32, MathMode::kTf32, MathMode::kBf16}) {
    const absl::Status status = firstframe::TimeMode(mode);
    if (status.ok()) continue;
    std::fprintf(stderr, "decode_benchmark: %s\n", status.ToString().c_str());
    return status.code() == absl::StatusCode::kUnavailable ? 3 : 2;
  }
  return 0;
}
