// ff_model_*: lib/flops.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/model.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/model_layout.h"
#include "lib/flops/model_loader.h"
#include "lib/flops/transformer_model.h"
#include "lib/flops/video_size.h"

using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;

namespace {

absl::StatusOr<firstframe::ModelDescription> FirstTransformer(
    const char* path) {
  FF_ASSIGN_OR_RETURN(std::vector<firstframe::ModelDescription> models,
                      firstframe::LoadModels(path));
  for (firstframe::ModelDescription& model : models) {
    if (model.transformer() != nullptr) return std::move(model);
  }
  return absl::NotFoundError(absl::StrCat(path, ": holds no transformer"));
}

// Dimensions of `count` tensors stand one after the other in `dims`.
absl::StatusOr<firstframe::ModelLayout> ReadLayout(const char* const* names,
                                                   const int32_t* ndims,
                                                   const int64_t* dims,
                                                   size_t count) {
  firstframe::ModelLayout layout;
  for (size_t i = 0; i < count; ++i) {
    FF_RETURN_IF_ERROR(NotNull(names[i], absl::StrCat("names[", i, "]")));
    if (ndims[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("ndims[", i, "] is ", ndims[i]));
    }
    if (!layout.Add(names[i], {dims, dims + ndims[i]})) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", names[i], "' comes twice"));
    }
    dims += ndims[i];
  }
  return layout;
}

}  // namespace

extern "C" {

ff_status ff_model_open(const char* path, ff_model** model) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(path, "path"));
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    FF_ASSIGN_OR_RETURN(firstframe::ModelDescription found,
                        FirstTransformer(path));
    if (!found.compat) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": the number of parameters is not known"));
    }
    *model = new ff_model{*found.compat, std::move(found)};
    return absl::OkStatus();
  });
}

ff_status ff_model_from_layout(const char* const* names, const int32_t* ndims,
                               const int64_t* dims, size_t count,
                               int64_t text_tokens, ff_model** model) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(names, "names"));
    FF_RETURN_IF_ERROR(NotNull(ndims, "ndims"));
    FF_RETURN_IF_ERROR(NotNull(dims, "dims"));
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    FF_ASSIGN_OR_RETURN(const firstframe::ModelLayout layout,
                        ReadLayout(names, ndims, dims, count));
    const auto compat = firstframe::CompatModelFromLayout(layout, text_tokens);
    // A model of no known family still has the other figures.
    auto description = firstframe::ReadModelLayout(layout, "layout");
    *model = new ff_model{compat, std::nullopt};
    if (description.ok()) (*model)->description = *std::move(description);
    return absl::OkStatus();
  });
}

ff_status ff_model_from_sizes(int64_t params, int64_t self_width,
                              int64_t cross_width, int64_t attention_modules,
                              int64_t text_tokens, ff_model** model) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    const std::pair<const char*, int64_t> sizes[] = {
        {"params", params},
        {"self_width", self_width},
        {"cross_width", cross_width},
        {"attention_modules", attention_modules},
        {"text_tokens", text_tokens}};
    for (const auto& [name, size] : sizes) {
      if (size < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, " is ", size, ", expected 0 or more"));
      }
    }
    *model =
        new ff_model{{.params = params,
                      .widths = {self_width, cross_width, attention_modules},
                      .text_tokens = text_tokens},
                     std::nullopt};
    return absl::OkStatus();
  });
}

ff_status ff_model_params(const ff_model* model, int64_t* params) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    FF_RETURN_IF_ERROR(NotNull(params, "params"));
    *params = model->compat.params;
    return absl::OkStatus();
  });
}

ff_status ff_model_compat_flops(const ff_model* model, int64_t tokens,
                                double* forward, double* attention) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    FF_RETURN_IF_ERROR(NotNull(forward, "forward"));
    FF_RETURN_IF_ERROR(NotNull(attention, "attention"));
    *forward = model->compat.ForwardFlops(tokens);
    *attention = model->compat.AttentionFlops(tokens);
    return absl::OkStatus();
  });
}

ff_status ff_model_forward_flops(const ff_model* model, int64_t batch,
                                 int64_t frames, int64_t height, int64_t width,
                                 double* flops) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    FF_RETURN_IF_ERROR(NotNull(flops, "flops"));
    const firstframe::TransformerConfig* const config =
        model->description ? model->description->transformer() : nullptr;
    if (config == nullptr ||
        config->family == firstframe::TransformerFamily::kUnknown) {
      return absl::UnimplementedError("the model is of no known family");
    }
    firstframe::ForwardShape shape;
    shape.batch = batch;
    shape.text_tokens = config->default_text_tokens;
    shape.image_tokens = config->default_image_tokens;
    firstframe::SetLatentSize({frames, height, width},
                              firstframe::LatentFactorsOf(*config), shape);
    FF_ASSIGN_OR_RETURN(const firstframe::ForwardCost cost,
                        firstframe::TransformerForwardCost(*config, shape));
    *flops = static_cast<double>(cost.TotalFlops());
    return absl::OkStatus();
  });
}

void ff_model_release(ff_model* model) { delete model; }

ff_status ff_device_peak_tflops(const char* device_name, double* tflops) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(device_name, "device_name"));
    FF_RETURN_IF_ERROR(NotNull(tflops, "tflops"));
    FF_ASSIGN_OR_RETURN(const firstframe::DevicePeak peak,
                        firstframe::FindDevicePeak(
                            firstframe::BuiltinDevicePeaks(), device_name));
    FF_ASSIGN_OR_RETURN(
        *tflops, firstframe::PeakTflops(peak, firstframe::MathType::kBf16));
    return absl::OkStatus();
  });
}

}  // extern "C"
