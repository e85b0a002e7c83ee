// Which layers a plan runs, and with which kernels.

#include "lib/wan_vae/cuda/plan.h"

namespace firstframe::cuda {
namespace {

void AppendResnet(const ResnetBlock& block,
                  std::vector<const ConvLayer*>* convs,
                  std::vector<const NormLayer*>* norms) {
  convs->push_back(&block.conv1);
  convs->push_back(&block.conv2);
  if (block.has_shortcut) convs->push_back(&block.conv_shortcut);
  norms->push_back(&block.norm1);
  norms->push_back(&block.norm2);
}

struct Layers {
  std::vector<const ConvLayer*> convs;
  std::vector<const NormLayer*> norms;
};

void AppendMid(const MidBlock& block, Layers* layers) {
  AppendResnet(block.resnet0, &layers->convs, &layers->norms);
  layers->convs.push_back(&block.attention.to_qkv);
  layers->convs.push_back(&block.attention.proj);
  layers->norms.push_back(&block.attention.norm);
  AppendResnet(block.resnet1, &layers->convs, &layers->norms);
}

void AppendResample(const ResampleBlock& block, Layers* layers) {
  layers->convs.push_back(&block.conv);
  if (block.has_time_conv) layers->convs.push_back(&block.time_conv);
}

Layers LayersOfDecoder(const ModuleTree& tree) {
  Layers layers;
  layers.convs = {&tree.post_quant_conv, &tree.decoder.conv_in};
  AppendMid(tree.decoder.mid_block, &layers);
  for (const UpBlock& block : tree.decoder.up_blocks) {
    for (const ResnetBlock& resnet : block.resnets) {
      AppendResnet(resnet, &layers.convs, &layers.norms);
    }
    if (block.has_upsampler) AppendResample(block.upsampler, &layers);
  }
  layers.norms.push_back(&tree.decoder.norm_out);
  layers.convs.push_back(&tree.decoder.conv_out);
  return layers;
}

Layers LayersOfEncoder(const ModuleTree& tree) {
  Layers layers;
  layers.convs = {&tree.encoder.conv_in};
  for (const DownBlock& block : tree.encoder.down_blocks) {
    if (block.is_resample) {
      AppendResample(block.resample, &layers);
    } else {
      AppendResnet(block.resnet, &layers.convs, &layers.norms);
    }
  }
  AppendMid(tree.encoder.mid_block, &layers);
  layers.norms.push_back(&tree.encoder.norm_out);
  layers.convs.push_back(&tree.encoder.conv_out);
  layers.convs.push_back(&tree.quant_conv);
  return layers;
}

}  // namespace

ConvVariant VariantOf(const ModuleTree& tree, const ConvLayer& layer,
                      const PlanOptions& options) {
  const bool planes = layer.module == tree.decoder.conv_out.module;
  const Resample resample = layer.stride[1] == 2 ? Resample::kDown
                            : layer.kernel[0] == 1 && layer.kernel[1] == 3
                                ? Resample::kUp
                                : Resample::kNone;
  return PickConvVariant(options.kind, options.mode,
                         static_cast<int>(layer.out_channels),
                         static_cast<int>(layer.kernel[1]), resample, planes);
}

std::vector<const ConvLayer*> DecoderLayers(const ModuleTree& tree) {
  return LayersOfDecoder(tree).convs;
}
std::vector<const ConvLayer*> EncoderLayers(const ModuleTree& tree) {
  return LayersOfEncoder(tree).convs;
}
std::vector<const NormLayer*> DecoderNorms(const ModuleTree& tree) {
  return LayersOfDecoder(tree).norms;
}
std::vector<const NormLayer*> EncoderNorms(const ModuleTree& tree) {
  return LayersOfEncoder(tree).norms;
}

}  // namespace firstframe::cuda
