#include "lib/wan_vae/cuda/device_parameters.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
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

constexpr int kStages = 4;
constexpr int64_t kStageBytes = 8 << 20;
constexpr int64_t kAlignment = 256;

// Gammas serve tiles of up to this many channels and norms of whole vectors.
constexpr int kGammaMultiple = 192;

int64_t AlignUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PinnedUploader>> PinnedUploader::Create() {
  FF_ASSIGN_OR_RETURN(Stream stream, Stream::Create());
  std::unique_ptr<PinnedUploader> uploader(
      new PinnedUploader(std::move(stream)));
  for (int i = 0; i < kStages; ++i) {
    FF_ASSIGN_OR_RETURN(PinnedBuffer buffer,
                        PinnedBuffer::Allocate(kStageBytes));
    FF_ASSIGN_OR_RETURN(Event done, Event::Create(EventKind::kOrdering));
    uploader->stages_.push_back({std::move(buffer), std::move(done)});
    uploader->free_.push_back(i);
  }
  return uploader;
}

absl::StatusOr<int> PinnedUploader::TakeStage() {
  int stage = -1;
  {
    absl::MutexLock lock(&mutex_);
    const auto any_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !free_.empty();
    };
    mutex_.Await(absl::Condition(&any_free));
    stage = free_.front();
    free_.erase(free_.begin());
  }
  if (absl::Status status = stages_[stage].done.Synchronize(); !status.ok()) {
    GiveBack(stage);
    return status;
  }
  return stage;
}

void PinnedUploader::GiveBack(int stage) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(stage);
}

absl::Status PinnedUploader::Upload(const TensorView& value, float* to) {
  const int64_t element = DTypeBits(value.dtype) / 8;
  const int64_t count = static_cast<int64_t>(value.bytes.size()) / element;
  const int64_t piece = kStageBytes / 4;  // elements, as float32
  for (int64_t first = 0; first < count; first += piece) {
    const int64_t size = std::min(piece, count - first);
    FF_ASSIGN_OR_RETURN(const int index, TakeStage());
    Stage& stage = stages_[index];
    const absl::Span<const std::byte> from =
        value.bytes.subspan(first * element, size * element);
    float* const staged = reinterpret_cast<float*>(stage.buffer.data());
    absl::Status status;
    if (value.dtype == DType::kF32) {
      std::memcpy(staged, from.data(), from.size());
    } else {
      status = ConvertToFloat(value.dtype, from, absl::MakeSpan(staged, size));
    }
    if (status.ok()) status = stream_.CopyAsync(to + first, staged, 4 * size);
    if (status.ok()) status = stage.done.Record(stream_.handle());
    GiveBack(index);
    FF_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status PinnedUploader::Finish() { return stream_.Synchronize(); }

DeviceParameters::DeviceParameters(const ModuleTree& tree,
                                   const PlanOptions& options, int device)
    : tree_(tree),
      options_(options),
      device_(device),
      is_assigned_(tree.parameters.size()),
      layers_(tree.modules.size()),
      gammas_(tree.parameters.size()) {
  for (const ParameterSpec& spec : tree.parameters) {
    const int side = absl::StartsWith(spec.name, "encoder.") ||
                     absl::StartsWith(spec.name, "quant_conv.");
    places_.push_back({side, sides_[side].raw_bytes});
    sides_[side].raw_bytes += AlignUp(4 * *CheckedNumElements(spec.shape));
  }
}

absl::Status DeviceParameters::Allocate() {
  Side& decoder = sides_[0];
  FF_ASSIGN_OR_RETURN(decoder.raw, DeviceBuffer::Allocate(decoder.raw_bytes));
  // Not cleared: pages come with the first write, from whichever thread it is.
  sides_[1].host.reset(new float[sides_[1].raw_bytes / sizeof(float)]);
  FF_ASSIGN_OR_RETURN(uploader_, PinnedUploader::Create());
  peak_bytes_ = std::max(peak_bytes_, bytes());
  return absl::OkStatus();
}

const float* DeviceParameters::Raw(int parameter) const {
  const Placed& place = places_[parameter];
  return reinterpret_cast<const float*>(sides_[place.side].raw.data() +
                                        place.offset);
}

absl::Status DeviceParameters::Assign(int index, const TensorView& value) {
  const ParameterSpec& spec = tree_.parameters[index];
  const Placed& place = places_[index];
  if (uploader_ == nullptr || is_prepared(place.side != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat(spec.name, ": parameters are not being assigned"));
  }
  if (value.shape != spec.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " has shape ", ShapeToString(value.shape),
                     ", expected ", ShapeToString(spec.shape)));
  }
  if (place.side == 1) {
    float* const to = sides_[1].host.get() + place.offset / sizeof(float);
    FF_RETURN_IF_ERROR(Annotate(
        ConvertToFloat(value.dtype, value.bytes,
                       absl::MakeSpan(to, *CheckedNumElements(spec.shape))),
        spec.name));
  } else {
    FF_RETURN_IF_ERROR(GetRuntime().SetDevice(device_));
    FF_RETURN_IF_ERROR(Annotate(
        uploader_->Upload(value, const_cast<float*>(Raw(index))), spec.name));
  }
  is_assigned_[index] = true;
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
  const TensorView all = {
      .dtype = DType::kF32,
      .shape = {static_cast<int64_t>(side.raw_bytes / sizeof(float))},
      .bytes = {reinterpret_cast<const std::byte*>(side.host.get()),
                static_cast<size_t>(side.raw_bytes)}};
  FF_RETURN_IF_ERROR(
      uploader_->Upload(all, reinterpret_cast<float*>(side.raw.data())));
  FF_RETURN_IF_ERROR(uploader_->Finish());
  side.host.reset();
  return absl::OkStatus();
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
  FF_RETURN_IF_ERROR(uploader_->Finish());
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
  return absl::OkStatus();
}

}  // namespace firstframe::cuda
