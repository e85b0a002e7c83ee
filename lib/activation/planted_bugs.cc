#include "lib/activation/planted_bugs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lib/base/check.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

void Scale(FloatTensor& tensor, float factor) {
  for (float& value : tensor.values) value *= factor;
}

// Elements of one output channel.
absl::Span<float> OutputChannel(FloatTensor& tensor, int64_t channel) {
  const int64_t size = tensor.values.size() / tensor.shape[0];
  return absl::MakeSpan(tensor.values).subspan(channel * size, size);
}

// Swaps the last two dimensions of each kernel.
void TransposeKernel(FloatTensor& w) {
  const int64_t rows = w.shape[w.shape.size() - 2], columns = w.shape.back();
  FF_CHECK(rows == columns);
  for (size_t begin = 0; begin < w.values.size(); begin += rows * columns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        std::swap(w.values[begin + i * columns + j],
                  w.values[begin + j * columns + i]);
      }
    }
  }
}

// Swaps input and output channels of a square layer.
void TransposeChannels(FloatTensor& w) {
  const int64_t channels = w.shape[0];
  FF_CHECK(channels == w.shape[1]);
  const int64_t kernel = w.values.size() / (channels * channels);
  for (int64_t i = 0; i < channels; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      std::swap_ranges(w.values.begin() + (i * channels + j) * kernel,
                       w.values.begin() + (i * channels + j + 1) * kernel,
                       w.values.begin() + (j * channels + i) * kernel);
    }
  }
}

// Makes a causal convolution see its last frame alone, as if the cache of the
// frames before had been lost.
void ForgetCache(FloatTensor& w) {
  const int64_t taps = w.shape[2], plane = w.shape[3] * w.shape[4];
  for (size_t i = 0; i < w.values.size(); ++i) {
    if (static_cast<int64_t>(i) / plane % taps != taps - 1) w.values[i] = 0;
  }
}

// Makes it see the two frames before in the wrong order.
void SwapCachedFrames(FloatTensor& w) {
  const int64_t taps = w.shape[2], plane = w.shape[3] * w.shape[4];
  FF_CHECK(taps == 3);
  for (size_t begin = 0; begin < w.values.size(); begin += taps * plane) {
    const auto first = w.values.begin() + begin;
    std::swap_ranges(first, first + plane, first + plane);
  }
}

void RollChannels(FloatTensor& gamma) {
  std::rotate(gamma.values.begin(), gamma.values.begin() + 1,
              gamma.values.end());
}

void SwapFrames(FloatTensor& latent) {
  const int64_t frames = latent.shape[2];
  const int64_t plane = latent.shape[3] * latent.shape[4];
  for (int64_t c = 0; c < latent.shape[1]; ++c) {
    float* const first = latent.values.data() + c * frames * plane;
    std::swap_ranges(first + plane, first + 2 * plane, first + 2 * plane);
  }
}

void DropLastFrame(FloatTensor& latent) {
  latent = SliceFrames(latent, 0, latent.shape[2] - 1);
}

PlantedBug OnWeight(std::string what, std::string module,
                    std::function<void(FloatTensor&)> change,
                    int occurrence = 0,
                    absl::string_view parameter = "weight") {
  const std::string name = absl::StrCat(module, ".", parameter);
  return {.what = std::move(what),
          .module = std::move(module),
          .occurrence = occurrence,
          .plant = [name, change](CaseInputs& in) { change(in.Weight(name)); }};
}

void AddWeightBugs(std::vector<PlantedBug>* bugs) {
  const auto scale = [](float factor) {
    return [factor](FloatTensor& w) { Scale(w, factor); };
  };
  bugs->push_back(OnWeight("convolution x1.02",
                           "decoder.up_blocks.1.resnets.0.conv1",
                           scale(1.02f)));
  bugs->push_back(OnWeight("convolution x1.005",
                           "decoder.up_blocks.2.resnets.1.conv2",
                           scale(1.005f)));
  bugs->push_back(OnWeight("upsampling convolution x0.98",
                           "decoder.up_blocks.1.upsamplers.0.resample.1",
                           scale(0.98f)));
  bugs->push_back(OnWeight("shortcut x1.01",
                           "decoder.up_blocks.1.resnets.0.conv_shortcut",
                           scale(1.01f)));
  bugs->push_back(OnWeight("norm x1.01", "decoder.up_blocks.1.resnets.2.norm2",
                           scale(1.01f), 0, "gamma"));
  bugs->push_back(OnWeight(
      "bias +0.02", "decoder.up_blocks.0.resnets.2.conv1",
      [](FloatTensor& bias) {
        for (float& value : bias.values) value += 0.02f;
      },
      0, "bias"));
  bugs->push_back(OnWeight("kernel rows and columns swapped",
                           "decoder.up_blocks.2.resnets.0.conv1",
                           TransposeKernel));
  bugs->push_back(OnWeight("input and output channels swapped",
                           "decoder.mid_block.resnets.1.conv1",
                           TransposeChannels));
  bugs->push_back(OnWeight("norm channels off by one",
                           "decoder.up_blocks.2.resnets.2.norm1", RollChannels,
                           0, "gamma"));
  bugs->push_back(
      OnWeight("q and k swapped", "decoder.mid_block.attentions.0.to_qkv",
               [](FloatTensor& w) {
                 const auto third = w.values.size() / 3;
                 std::swap_ranges(w.values.begin(), w.values.begin() + third,
                                  w.values.begin() + third);
               }));
  bugs->push_back(
      OnWeight("one NaN weight", "decoder.up_blocks.3.resnets.1.conv1",
               [](FloatTensor& w) {
                 // In the newest frame's tap: the first call has no older ones.
                 w.values[(w.shape[2] - 1) * w.shape[3] * w.shape[4]] =
                     std::numeric_limits<float>::quiet_NaN();
               }));
  bugs->push_back(OnWeight("one channel dead",
                           "decoder.up_blocks.3.resnets.0.conv1",
                           [](FloatTensor& w) {
                             for (float& v : OutputChannel(w, 3)) v = 0;
                           }));
  bugs->push_back(OnWeight("one channel's sign flipped",
                           "decoder.up_blocks.2.resnets.1.conv1",
                           [](FloatTensor& w) {
                             for (float& v : OutputChannel(w, 5)) v = -v;
                           }));
  bugs->push_back(OnWeight("cache of earlier frames lost",
                           "decoder.up_blocks.0.resnets.0.conv1", ForgetCache,
                           1));
  bugs->push_back(OnWeight("cached frames in the wrong order",
                           "decoder.up_blocks.1.resnets.1.conv2",
                           SwapCachedFrames, 1));
  bugs->push_back(OnWeight("first layer x1.01, equal inputs", "post_quant_conv",
                           scale(1.01f)));
  bugs->push_back({.what = "output channels reversed",
                   .module = "decoder.conv_out",
                   .plant = [](CaseInputs& in) {
                     for (const char* name : {"decoder.conv_out.weight",
                                              "decoder.conv_out.bias"}) {
                       FloatTensor& w = in.Weight(name);
                       const auto size = w.values.size() / 3;
                       std::swap_ranges(w.values.begin(),
                                        w.values.begin() + size,
                                        w.values.begin() + 2 * size);
                     }
                   }});
}

// Bugs before the model. With a record of the latent, it is what differs.
void AddLatentBugs(std::vector<PlantedBug>* bugs) {
  const auto add = [&](std::string what,
                       std::function<void(FloatTensor&)> change) {
    bugs->push_back({.what = std::move(what),
                     .module = "post_quant_conv",
                     .in_latent = true,
                     .plant = [change](CaseInputs& in) { change(in.latent); }});
  };
  add("last frame dropped", DropLastFrame);
  add("two frames swapped", SwapFrames);
  add("another latent", [](FloatTensor& latent) {
    FillSynthetic("latent.other", latent.shape, 0,
                  absl::MakeSpan(latent.values));
  });
  add("latent x1.003", [](FloatTensor& latent) { Scale(latent, 1.003f); });
}

// Bugs in the last of three steps alone.
void AddLateBugs(std::vector<PlantedBug>* bugs) {
  const auto add = [&](PlantedBug bug) {
    bug.what += ", at step 2 alone";
    bug.step = 2;
    bugs->push_back(std::move(bug));
  };
  add(OnWeight("convolution x1.01", "decoder.up_blocks.2.resnets.1.conv1",
               [](FloatTensor& w) { Scale(w, 1.01f); }));
  add(OnWeight("kernel rows and columns swapped",
               "decoder.up_blocks.1.resnets.2.conv2", TransposeKernel));
  add(OnWeight("last layer x1.01", "decoder.conv_out",
               [](FloatTensor& w) { Scale(w, 1.01f); }));
}

}  // namespace

FloatTensor& CaseInputs::Weight(absl::string_view name) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (tree->parameters[i].name == name) return weights[i];
  }
  FF_CHECK(!"a planted bug names a parameter that the model lacks");
  return weights[0];
}

std::vector<PlantedBug> PlantedBugs() {
  std::vector<PlantedBug> bugs;
  AddWeightBugs(&bugs);
  AddLatentBugs(&bugs);
  AddLateBugs(&bugs);
  return bugs;
}

}  // namespace firstframe
