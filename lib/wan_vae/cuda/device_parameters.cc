#include "lib/wan_vae/cuda/device_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/runtime.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/cuda/kernels.h"

namespace firstframe::cuda {
namespace {

constexpr int64_t kAlignment = 256;

// Gammas serve tiles of up to this many channels and norms of whole vectors.
constexpr int kGammaMultiple = 192;

int64_t AlignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceParameters::DeviceParameters(const ModuleTree& tree,
                                   const PlanOptions& options, int device)
    : tree_(tree),
      options_(options),
      device_(device),
      is_assigned_(tree.parameters.size()),
      layers_(tree.modules.size()),
      gammas_(tree.parameters.size()),
      encoder_values_(tree.parameters.size()) {
  for (const ParameterSpec& spec : tree.parameters) {
    const int side = IsEncoderParameter(spec);
    places_.push_back({side, sides_[side].raw_bytes});
    sides_[side].raw_bytes += AlignUp(4 * *CheckedNumElements(spec.shape));
  }
}

DeviceParameters::~DeviceParameters() {
  if (copies_) (void)copies_->Synchronize();
  if (releaser_.joinable()) releaser_.join();
}

absl::Status DeviceParameters::Allocate() {
  Side& decoder = sides_[0];
  FF_ASSIGN_OR_RETURN(decoder.raw, DeviceBuffer::Allocate(decoder.raw_bytes));
  FF_ASSIGN_OR_RETURN(Stream copies, Stream::Create());
  copies_.emplace(std::move(copies));
  peak_bytes_ = std::max(peak_bytes_, bytes());
  return absl::OkStatus();
}

// Made when a value has to be converted: pinning its stages takes a while.
absl::StatusOr<PinnedUploader*> DeviceParameters::Uploader() {
  const absl::MutexLock lock(&mutex_);
  if (uploader_ == nullptr) {
    FF_ASSIGN_OR_RETURN(uploader_, PinnedUploader::Create());
  }
  return uploader_.get();
}

const float* DeviceParameters::Raw(int parameter) const {
  const Placed& place = places_[parameter];
  return reinterpret_cast<const float*>(sides_[place.side].raw.data() +
                                        place.offset);
}

absl::Status DeviceParameters::Assign(int index, const TensorView& value) {
  const ParameterSpec& spec = tree_.parameters[index];
  const Placed& place = places_[index];
  if (!copies_ || is_prepared(place.side != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat(spec.name, ": parameters are not being assigned"));
  }
  if (!Fits(index, value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " has shape ", ShapeToString(value.shape),
                     ", expected ", ShapeToString(spec.shape)));
  }
  if (place.side == 1) {
    FF_RETURN_IF_ERROR(Annotate(AssignToEncoder(index, value), spec.name));
  } else {
    FF_RETURN_IF_ERROR(GetRuntime().SetDevice(device_));
    FF_ASSIGN_OR_RETURN(PinnedUploader* const uploader, Uploader());
    FF_RETURN_IF_ERROR(Annotate(
        uploader->Upload(value, const_cast<float*>(Raw(index))), spec.name));
  }
  is_assigned_[index] = true;
  return absl::OkStatus();
}

absl::Status DeviceParameters::AssignToEncoder(int index,
                                               const TensorView& value) {
  float* to = nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    // Not cleared: pages come with the first write, from whichever thread.
    if (encoder_memory_ == nullptr) {
      encoder_memory_.reset(new float[sides_[1].raw_bytes / sizeof(float)]);
    }
    to = encoder_memory_.get() + places_[index].offset / sizeof(float);
  }
  const int64_t count = *CheckedNumElements(value.shape);
  FF_RETURN_IF_ERROR(
      ConvertToFloat(value.dtype, value.bytes, absl::MakeSpan(to, count)));
  encoder_values_[index] = {
      .dtype = DType::kF32,
      .shape = value.shape,
      .bytes = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(to),
                                   count * sizeof(float))};
  return absl::OkStatus();
}

absl::StatusOr<std::vector<bool>> DeviceParameters::Take(
    absl::Span<const TensorView> values,
    absl::Span<const WanVae::HostBlock> blocks) {
  FF_CHECK(values.size() == places_.size());
  if (!copies_ || is_prepared(false) || is_prepared(true)) {
    return absl::FailedPreconditionError("parameters are not being assigned");
  }
  std::vector<bool> taken(values.size());
  for (const WanVae::HostBlock& block : blocks) {
    FF_RETURN_IF_ERROR(TakeBlock(values, block, taken));
  }
  return taken;
}

absl::Status DeviceParameters::TakeBlock(absl::Span<const TensorView> values,
                                         const WanVae::HostBlock& block,
                                         std::vector<bool>& taken) {
  std::vector<Copy> copies;
  std::vector<int> of_decoder;
  Kept kept = {.owner = block.owner, .registration = {}};
  for (size_t i = 0; i < values.size(); ++i) {
    const TensorView& value = values[i];
    const bool is_inside = value.bytes.data() >= block.bytes.data() &&
                           value.bytes.data() + value.bytes.size() <=
                               block.bytes.data() + block.bytes.size();
    if (!is_inside || !Fits(static_cast<int>(i), value)) continue;
    if (places_[i].side == 1) {
      encoder_values_[i] = value;
      is_assigned_[i] = taken[i] = kept.has_encoder = true;
    } else if (value.dtype == DType::kF32) {
      copies.push_back({const_cast<float*>(Raw(static_cast<int>(i))),
                        value.bytes.data(), value.bytes.size()});
      of_decoder.push_back(static_cast<int>(i));
    }
  }
  if (!copies.empty()) {
    absl::StatusOr<HostRegistration> registration = HostRegistration::Register(
        const_cast<std::byte*>(block.bytes.data()), block.bytes.size());
    if (registration.ok()) {
      kept.registration = *std::move(registration);
      const absl::Status copied = copies_->CopyBatchAsync(copies);
      if (!copied.ok()) {
        // Some may be on their way out of memory that goes with `kept`.
        (void)copies_->Synchronize();
        return copied;
      }
      for (const int i : of_decoder) is_assigned_[i] = taken[i] = true;
    } else {
      copies.clear();
    }
  }
  if (kept.has_encoder || !copies.empty()) kept_.push_back(std::move(kept));
  return absl::OkStatus();
}

int64_t DeviceParameters::bytes() const {
  int64_t total = 0;
  for (const Side& side : sides_) {
    total += static_cast<int64_t>(side.raw.size_bytes()) + side.packed_bytes;
  }
  return total;
}

DeviceParameters::PackedBlock DeviceParameters::TakePacked(bool encoder) {
  Side& side = sides_[encoder];
  FF_CHECK(side.is_prepared && side.packed != nullptr);
  PackedBlock block;
  block.data = side.packed->data();
  block.size_bytes = side.packed_bytes;
  block.memory = std::move(side.packed);
  return block;
}

void DeviceParameters::Rebase(bool encoder, std::byte* data) {
  Side& side = sides_[encoder];
  if (side.packed_data == data) return;
  const auto moved = [&](const void* old) {
    return data + (static_cast<const std::byte*>(old) - side.packed_data);
  };
  for (const ConvLayer* conv :
       encoder ? EncoderLayers(tree_) : DecoderLayers(tree_)) {
    Layer& layer = layers_[conv->module];
    layer.weights = moved(layer.weights);
    layer.bias = reinterpret_cast<const float*>(moved(layer.bias));
  }
  for (const NormLayer* norm :
       encoder ? EncoderNorms(tree_) : DecoderNorms(tree_)) {
    gammas_[norm->gamma] =
        reinterpret_cast<const float*>(moved(gammas_[norm->gamma]));
  }
  side.packed_data = data;
}

absl::Status DeviceParameters::UploadEncoder() {
  Side& side = sides_[1];
  FF_ASSIGN_OR_RETURN(side.raw, DeviceBuffer::Allocate(side.raw_bytes));
  FF_ASSIGN_OR_RETURN(PinnedUploader* const uploader, Uploader());
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].side != 1) continue;
    FF_RETURN_IF_ERROR(
        Annotate(uploader->Upload(encoder_values_[i],
                                  const_cast<float*>(Raw(static_cast<int>(i)))),
                 tree_.parameters[i].name));
  }
  return absl::OkStatus();
}

// Gives up what only this side needed.
void DeviceParameters::ReleaseHostMemory(bool encoder) {
  if (encoder) {
    const absl::MutexLock lock(&mutex_);
    encoder_memory_.reset();
    encoder_values_.assign(places_.size(), {});
  }
  std::vector<Kept> given_up;
  std::vector<Kept> still_needed;
  for (Kept& kept : kept_) {
    const bool is_needed = kept.has_encoder && !encoder;
    (is_needed ? still_needed : given_up).push_back(std::move(kept));
  }
  kept_ = std::move(still_needed);
  if (releaser_.joinable()) releaser_.join();
  if (given_up.empty()) return;
  // Unpinning and unmapping the published decoder's takes 9 ms, for which the
  // first decode need not wait.
  releaser_ = std::thread([device = device_, given_up = std::move(given_up)] {
    (void)GetRuntime().SetDevice(device);
  });
}

absl::Status DeviceParameters::Prepare(bool encoder, const Stream& stream) {
  Side& side = sides_[encoder];
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].side == encoder && !is_assigned_[i]) {
      return absl::FailedPreconditionError(
          absl::StrCat(tree_.parameters[i].name, " has no value"));
    }
  }
  if (encoder) FF_RETURN_IF_ERROR(UploadEncoder());
  if (copies_) FF_RETURN_IF_ERROR(copies_->Synchronize());
  {
    const absl::MutexLock lock(&mutex_);
    if (uploader_ != nullptr) FF_RETURN_IF_ERROR(uploader_->Finish());
  }
  const auto convs = encoder ? EncoderLayers(tree_) : DecoderLayers(tree_);
  const auto norms = encoder ? EncoderNorms(tree_) : DecoderNorms(tree_);
  // Twice: count, then place.
  for (const bool place : {false, true}) {
    int64_t offset = 0;
    const auto take = [&](int64_t bytes) {
      const int64_t at = offset;
      offset += AlignUp(bytes);
      return side.packed_data + at;
    };
    std::vector<Copy> copies;
    for (const ConvLayer* conv : convs) {
      const ConvVariant variant = VariantOf(tree_, *conv, options_);
      const int out = static_cast<int>(conv->out_channels);
      const int in = static_cast<int>(conv->in_channels);
      const int time_taps = static_cast<int>(conv->kernel[0]);
      std::byte* const weights =
          take(PackedWeightBytes(variant, out, in, time_taps));
      std::byte* const bias = take(4 * PaddedChannels(variant, out));
      if (!place) continue;
      const int taps = time_taps * variant.window * variant.window;
      const PackSource source = {.from = Raw(conv->weight),
                                 .n_stride = int64_t{in} * taps,
                                 .k_stride = taps,
                                 .tap_stride = 1,
                                 .n = out,
                                 .k = in,
                                 .taps = taps,
                                 .time_taps = time_taps};
      FF_RETURN_IF_ERROR(
          Annotate(LaunchPack(variant, source, weights, stream.handle()),
                   tree_.modules[conv->module].name));
      copies.push_back({bias, Raw(conv->bias), size_t{4} * out});
      layers_[conv->module] = {variant, weights,
                               reinterpret_cast<const float*>(bias)};
    }
    for (const NormLayer* norm : norms) {
      const int channels = static_cast<int>(norm->channels);
      std::byte* const gamma =
          take(4 * CeilDivide(channels, kGammaMultiple) * kGammaMultiple);
      if (!place) continue;
      copies.push_back({gamma, Raw(norm->gamma), size_t{4} * channels});
      gammas_[norm->gamma] = reinterpret_cast<const float*>(gamma);
    }
    if (place) {
      FF_RETURN_IF_ERROR(stream.CopyBatchAsync(copies));
      continue;
    }
    FF_ASSIGN_OR_RETURN(DeviceBuffer packed, DeviceBuffer::Allocate(offset));
    side.packed = std::make_shared<DeviceBuffer>(std::move(packed));
    side.packed_data = side.packed->data();
    side.packed_bytes = offset;
    FF_RETURN_IF_ERROR(stream.FillAsync(side.packed_data, 0, offset));
  }
  peak_bytes_ = std::max(peak_bytes_, bytes());
  FF_RETURN_IF_ERROR(stream.Synchronize());
  side.raw = DeviceBuffer();
  side.is_prepared = true;
  ReleaseHostMemory(encoder);
  return absl::OkStatus();
}

}  // namespace firstframe::cuda
