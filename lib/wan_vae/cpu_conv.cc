#include "lib/wan_vae/cpu_conv.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/wan_vae/cpu_kernels.h"
#include "lib/wan_vae/parallel.h"
#include "lib/wan_vae/weight_layout.h"

namespace firstframe {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kF32 = memory::data_type::f32;

// Work for which another thread pays: some 20 microseconds of one core.
constexpr int64_t kFlopsPerThread = 2'000'000;

// oneDNN pads channels to this many.
constexpr int64_t kVectorChannels = 16;

// How the kernels for this processor sum, and so how groups of input channels
// are to be made and added.
struct Summing {
  int64_t longest_chain;   // products that one chain of additions may take
  int64_t group_multiple;  // channels
  bool adds_apart;
};

// Kernels for AVX-512 add a group's sum to what is there at the end. Those for
// AVX2 and older load what is there and go on with its chain, so that groups
// added by them would be one chain again; and each chain of theirs is as long
// as its group, so groups are small.
const Summing& SummingHere() {
  constexpr unsigned kAvx512Core = dnnl_cpu_isa_avx512_core;
  static const Summing summing =
      (dnnl_get_effective_cpu_isa() & kAvx512Core) == kAvx512Core
          ? Summing{64 * 27, 16, false}
          : Summing{8 * 27, 8, true};
  return summing;
}

memory::desc ChannelsLast(int64_t batch, int64_t channels, int64_t frames,
                          int64_t height, int64_t width) {
  return memory::desc({batch, channels, frames, height, width}, kF32,
                      Tag::ndhwc);
}

memory::dims WeightDims(const ConvLayer& layer) {
  return {layer.out_channels, layer.in_channels, layer.kernel[0],
          layer.kernel[1], layer.kernel[2]};
}

// [out, in, kt, kh, kw] inside weights of `in_channels` input channels.
memory::desc PlainWeights(const ConvLayer& layer, int64_t in_channels) {
  const auto& k = layer.kernel;
  const int64_t taps = k[0] * k[1] * k[2];
  return memory::desc(WeightDims(layer), kF32,
                      {in_channels * taps, taps, k[1] * k[2], k[2], 1});
}

WeightShape PackedShape(const ConvLayer& layer) {
  return {.out = layer.out_channels,
          .in = layer.in_channels,
          .taps = layer.kernel[0] * layer.kernel[1] * layer.kernel[2]};
}

// Returns the block of `desc` when it is the layout of weight_layout.h, else 0.
int64_t PackedBlock(const memory::desc& desc, const ConvLayer& layer) {
  const auto& format = desc.data.format_desc.blocking;
  if (desc.data.format_kind != dnnl_blocked || format.inner_nblks != 1 ||
      format.inner_idxs[0] != 0 || desc.data.offset0 != 0 ||
      desc.data.extra.flags != 0) {
    return 0;
  }
  const int64_t block = format.inner_blks[0];
  // Outermost first: out / block, time, height, width, in, block.
  const auto& k = layer.kernel;
  const int64_t in = block, width = in * layer.in_channels;
  const int64_t height = width * k[2], time = height * k[1], out = time * k[0];
  const int64_t expected[] = {out, in, time, height, width};
  for (int axis = 0; axis < 5; ++axis) {
    // An axis of one element may have any stride.
    const bool is_single = axis > 0 && desc.data.dims[axis] == 1;
    if (!is_single && format.strides[axis] != expected[axis]) return 0;
  }
  const bool is_whole = static_cast<int64_t>(desc.get_size() / sizeof(float)) ==
                        PackedWeightSize(PackedShape(layer), block);
  return block % kVectorChannels == 0 && is_whole ? block : 0;
}

float* Data(const memory& memory) {
  return static_cast<float*>(memory.get_data_handle());
}

}  // namespace

absl::Status CatchDnnl(const char* what, absl::FunctionRef<void()> body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    const std::string message = absl::StrCat(what, ": oneDNN: ", error.what(),
                                             " (status ", error.status, ")");
    if (error.status == dnnl_out_of_memory) {
      return absl::ResourceExhaustedError(message);
    }
    return absl::InternalError(message);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(what, ": no memory"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DnnlContext>> DnnlContext::Create() {
  std::unique_ptr<DnnlContext> context;
  const absl::Status status =
      CatchDnnl("cpu device", [&] { context.reset(new DnnlContext()); });
  if (!status.ok()) return absl::UnavailableError(status.message());
  return context;
}

memory DnnlContext::Scratch(const memory::desc& desc) {
  if (scratch_.size() < desc.get_size()) {
    scratch_.clear();
    scratch_.shrink_to_fit();
    scratch_.resize(desc.get_size());
  }
  return memory(desc, engine_, scratch_.data());
}

float* DnnlContext::Partial(int64_t size) {
  if (static_cast<int64_t>(partial_.size()) < size) partial_.resize(size);
  return partial_.data();
}

int64_t NumInputGroups(const ConvLayer& layer) {
  // The others are short, and take their input as it is.
  if (layer.kernel[0] == 1 || layer.kernel[1] == 1) return 1;
  const int64_t taps = layer.kernel[0] * layer.kernel[1] * layer.kernel[2];
  const auto& [longest_chain, multiple, adds_apart] = SummingHere();
  for (int64_t groups = 1; groups * multiple <= layer.in_channels; ++groups) {
    const int64_t channels = layer.in_channels / groups;
    if (layer.in_channels % groups == 0 && channels % multiple == 0 &&
        channels * taps <= longest_chain) {
      return groups;
    }
  }
  return 1;
}

CpuConv::CpuConv(const ConvLayer& layer, DnnlContext& context)
    : layer_(layer),
      context_(context),
      group_layer_(layer),
      groups_(NumInputGroups(layer)) {
  group_layer_.in_channels /= num_groups();
}

bool CpuConv::is_narrow() const {
  return std::max(layer_.in_channels, layer_.out_channels) < kVectorChannels;
}

dnnl::convolution_forward::primitive_desc CpuConv::Describe(
    const ConvShape& shape, bool is_first) const {
  const ConvLayer& layer = group_layer_;
  const auto out = ConvOutputShape(layer, shape);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (is_first ? shape.accumulate : !SummingHere().adds_apart) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0f);
    attr.set_post_ops(post_ops);
  }
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      ChannelsLast(shape.batch, layer.in_channels, shape.frames, shape.height,
                   shape.width),
      memory::desc(WeightDims(layer), kF32, Tag::any),
      is_first ? memory::desc({layer.out_channels}, kF32, Tag::a)
               : memory::desc(),
      ChannelsLast(out[0], out[4], out[1], out[2], out[3]),
      {layer.stride[0], layer.stride[1], layer.stride[2]},
      {shape.zero_frames, layer.padding[0], layer.padding[1]},
      {0, layer.padding[0] + shape.zero_after,
       layer.padding[1] + shape.zero_after});
  return dnnl::convolution_forward::primitive_desc(desc, attr,
                                                   context_.engine());
}

memory CpuConv::WeightsIn(Group& group, const memory::desc& desc) {
  for (const memory& weights : group) {
    if (weights.get_desc() == desc) return weights;
  }
  FF_CHECK(!group.empty());
  memory from = group.front();
  memory to(desc, context_.engine());
  const WeightShape shape = PackedShape(group_layer_);
  const int64_t from_block = PackedBlock(from.get_desc(), group_layer_);
  const int64_t to_block = PackedBlock(desc, group_layer_);
  if (from_block > 0 && to_block > 0) {
    RepackWeights(shape, Data(from), from_block, Data(to), to_block);
  } else if (to_block > 0 &&
             from.get_desc() ==
                 PlainWeights(group_layer_, layer_.in_channels)) {
    PackWeights(shape, Data(from), layer_.in_channels * shape.taps, to_block,
                Data(to));
  } else {
    dnnl::reorder(from, to).execute(context_.stream(), from, to);
  }
  group.push_back(to);
  return to;
}

absl::Status CpuConv::SetWeights(const float* weight, const float* bias,
                                 const ConvShape& likely) {
  const int64_t taps = PackedShape(layer_).taps;
  if (is_narrow()) {
    plain_weights_.assign(
        weight, weight + layer_.out_channels * layer_.in_channels * taps);
    plain_bias_.assign(bias, bias + layer_.out_channels);
    return absl::OkStatus();
  }
  return CatchDnnl("convolution weights", [&] {
    const memory::desc plain = PlainWeights(group_layer_, layer_.in_channels);
    const memory::desc wanted =
        Describe(likely, /*is_first=*/true).weights_desc();
    for (int64_t g = 0; g < num_groups(); ++g) {
      const float* from = weight + g * group_layer_.in_channels * taps;
      groups_[g] = {memory(plain, context_.engine(), const_cast<float*>(from))};
      memory stored = WeightsIn(groups_[g], wanted);
      if (stored.get_desc() == plain) {  // still the caller's memory: copy it
        stored = memory(plain, context_.engine());
        std::memcpy(stored.get_data_handle(), from, plain.get_size());
      }
      groups_[g] = {stored};
    }
    bias_ = memory({{layer_.out_channels}, kF32, Tag::a}, context_.engine());
    std::memcpy(bias_.get_data_handle(), bias,
                layer_.out_channels * sizeof(float));
  });
}

CpuConv::Prepared& CpuConv::Prepare(const ConvShape& shape, bool is_first) {
  const auto found = prepared_.find({shape, is_first});
  if (found != prepared_.end()) return found->second;
  const auto desc = Describe(shape, is_first);
  Prepared prepared = {
      .primitive = dnnl::convolution_forward(desc),
      .input = memory(desc.src_desc(), context_.engine(), nullptr),
      .output = memory(desc.dst_desc(), context_.engine(), nullptr),
      .weights = {},
      .scratch = desc.scratchpad_desc()};
  for (Group& group : groups_) {
    prepared.weights.push_back(WeightsIn(group, desc.weights_desc()));
  }
  return prepared_.emplace(std::make_pair(shape, is_first), std::move(prepared))
      .first->second;
}

absl::Status CpuConv::Run(const ConvShape& shape, const float* input,
                          float* output) {
  if (is_narrow()) {
    DirectConv(layer_, shape, plain_weights_.data(), plain_bias_.data(), input,
               output);
    return absl::OkStatus();
  }
  // oneDNN takes every thread it is offered, however little there is to do.
  const ThreadLimit limit(ConvFlops(group_layer_, shape) / kFlopsPerThread + 1);
  const int64_t group_size = shape.batch * shape.frames * shape.height *
                             shape.width * group_layer_.in_channels;
  const auto out = ConvOutputShape(layer_, shape);
  const int64_t out_size = out[0] * out[1] * out[2] * out[3] * out[4];
  return CatchDnnl("convolution", [&] {
    for (int64_t g = 0; g < num_groups(); ++g) {
      Prepared& prepared = Prepare(shape, g == 0);
      prepared.input.set_data_handle(
          const_cast<float*>(input + g * group_size));
      const bool is_apart = g > 0 && SummingHere().adds_apart;
      float* const to = is_apart ? context_.Partial(out_size) : output;
      prepared.output.set_data_handle(to);
      std::unordered_map<int, memory> arguments = {
          {DNNL_ARG_SRC, prepared.input},
          {DNNL_ARG_WEIGHTS, prepared.weights[g]},
          {DNNL_ARG_DST, prepared.output},
          {DNNL_ARG_SCRATCHPAD, context_.Scratch(prepared.scratch)}};
      if (g == 0) arguments[DNNL_ARG_BIAS] = bias_;
      prepared.primitive.execute(context_.stream(), arguments);
      if (is_apart) AddTo(output, to, out_size);
    }
  });
}

int64_t CpuConv::parameter_bytes() const {
  int64_t bytes = (plain_weights_.size() + plain_bias_.size()) * sizeof(float);
  if (bias_) bytes += bias_.get_desc().get_size();
  for (const Group& group : groups_) {
    for (const memory& weights : group) bytes += weights.get_desc().get_size();
  }
  return bytes;
}

}  // namespace firstframe
