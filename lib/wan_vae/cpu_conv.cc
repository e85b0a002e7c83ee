#include "lib/wan_vae/cpu_conv.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
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

memory::desc ChannelsLast(int64_t batch, int64_t channels, int64_t frames,
                          int64_t height, int64_t width) {
  return memory::desc({batch, channels, frames, height, width}, kF32,
                      Tag::ndhwc);
}

memory::dims WeightDims(const ConvLayer& layer) {
  return {layer.out_channels, layer.in_channels, layer.kernel[0],
          layer.kernel[1], layer.kernel[2]};
}

memory::desc PlainWeights(const ConvLayer& layer) {
  return memory::desc(WeightDims(layer), kF32, Tag::oidhw);
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

bool CpuConv::is_narrow() const {
  return std::max(layer_.in_channels, layer_.out_channels) < kVectorChannels;
}

dnnl::convolution_forward::primitive_desc CpuConv::Describe(
    const ConvShape& shape) const {
  const auto out = ConvOutputShape(layer_, shape);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum(1.0f);
    attr.set_post_ops(post_ops);
  }
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      ChannelsLast(shape.batch, layer_.in_channels, shape.frames, shape.height,
                   shape.width),
      memory::desc(WeightDims(layer_), kF32, Tag::any),
      memory::desc({layer_.out_channels}, kF32, Tag::a),
      ChannelsLast(out[0], out[4], out[1], out[2], out[3]),
      {layer_.stride[0], layer_.stride[1], layer_.stride[2]},
      {shape.zero_frames, layer_.padding[0], layer_.padding[1]},
      {0, layer_.padding[0] + shape.zero_after,
       layer_.padding[1] + shape.zero_after});
  return dnnl::convolution_forward::primitive_desc(desc, attr,
                                                   context_.engine());
}

memory CpuConv::WeightsIn(const memory::desc& desc) {
  for (const memory& weights : weights_) {
    if (weights.get_desc() == desc) return weights;
  }
  FF_CHECK(!weights_.empty());
  memory from = weights_.front();
  memory to(desc, context_.engine());
  const WeightShape shape = PackedShape(layer_);
  const int64_t from_block = PackedBlock(from.get_desc(), layer_);
  const int64_t to_block = PackedBlock(desc, layer_);
  if (from_block > 0 && to_block > 0) {
    RepackWeights(shape, Data(from), from_block, Data(to), to_block);
  } else if (from.get_desc() == PlainWeights(layer_) && to_block > 0) {
    PackWeights(shape, Data(from), to_block, Data(to));
  } else {
    dnnl::reorder(from, to).execute(context_.stream(), from, to);
  }
  weights_.push_back(to);
  return to;
}

absl::Status CpuConv::SetWeights(const float* weight, const float* bias,
                                 const ConvShape& likely) {
  if (is_narrow()) {
    const auto& k = layer_.kernel;
    plain_weights_.assign(
        weight,
        weight + layer_.out_channels * layer_.in_channels * k[0] * k[1] * k[2]);
    plain_bias_.assign(bias, bias + layer_.out_channels);
    return absl::OkStatus();
  }
  return CatchDnnl("convolution weights", [&] {
    const memory::desc plain = PlainWeights(layer_);
    weights_ = {memory(plain, context_.engine(), const_cast<float*>(weight))};
    memory blocked = WeightsIn(Describe(likely).weights_desc());
    if (blocked.get_desc() == plain) {  // still the caller's memory: copy it
      memory copy(plain, context_.engine());
      std::memcpy(copy.get_data_handle(), weight, plain.get_size());
      blocked = copy;
    }
    weights_ = {blocked};
    bias_ = memory({{layer_.out_channels}, kF32, Tag::a}, context_.engine());
    std::memcpy(bias_.get_data_handle(), bias,
                layer_.out_channels * sizeof(float));
  });
}

CpuConv::Prepared& CpuConv::Prepare(const ConvShape& shape) {
  const auto found = prepared_.find(shape);
  if (found != prepared_.end()) return found->second;
  const auto desc = Describe(shape);
  Prepared prepared = {
      .primitive = dnnl::convolution_forward(desc),
      .input = memory(desc.src_desc(), context_.engine(), nullptr),
      .weights = WeightsIn(desc.weights_desc()),
      .bias = bias_,
      .output = memory(desc.dst_desc(), context_.engine(), nullptr),
      .scratch = desc.scratchpad_desc()};
  return prepared_.emplace(shape, std::move(prepared)).first->second;
}

absl::Status CpuConv::Run(const ConvShape& shape, const float* input,
                          float* output) {
  if (is_narrow()) {
    DirectConv(layer_, shape, plain_weights_.data(), plain_bias_.data(), input,
               output);
    return absl::OkStatus();
  }
  // oneDNN takes every thread it is offered, however little there is to do.
  const ThreadLimit limit(ConvFlops(layer_, shape) / kFlopsPerThread + 1);
  return CatchDnnl("convolution", [&] {
    Prepared& prepared = Prepare(shape);
    prepared.input.set_data_handle(const_cast<float*>(input));
    prepared.output.set_data_handle(output);
    prepared.primitive.execute(
        context_.stream(),
        {{DNNL_ARG_SRC, prepared.input},
         {DNNL_ARG_WEIGHTS, prepared.weights},
         {DNNL_ARG_BIAS, prepared.bias},
         {DNNL_ARG_DST, prepared.output},
         {DNNL_ARG_SCRATCHPAD, context_.Scratch(prepared.scratch)}});
  });
}

int64_t CpuConv::parameter_bytes() const {
  int64_t bytes = (plain_weights_.size() + plain_bias_.size()) * sizeof(float);
  if (!weights_.empty()) bytes += bias_.get_desc().get_size();
  for (const memory& weights : weights_) bytes += weights.get_desc().get_size();
  return bytes;
}

}  // namespace firstframe
