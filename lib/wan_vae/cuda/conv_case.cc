#include "lib/wan_vae/cuda/conv_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lib/base/status_macros.h"
#include "lib/wan_vae/cuda/kernels.h"

namespace firstframe::cuda::testing {
namespace {

uint16_t ToBf16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
float FromBf16(uint16_t v) {
  const uint32_t bits = uint32_t{v} << 16;
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}

// As many values as are worth making one by one; a prime, so that repeats fall
// on other channels and pixels.
constexpr size_t kDistinct = 1'000'003;

std::vector<float> Random(size_t count, uint64_t seed, float scale,
                          bool as_bf16 = false) {
  std::vector<float> values;
  values.reserve(count);
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  while (values.size() < std::min(count, kDistinct)) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const float v =
        (static_cast<float>(static_cast<uint32_t>(state >> 40)) * 0x1p-23f -
         1.0f) *
        scale;
    values.push_back(as_bf16 ? FromBf16(ToBf16(v)) : v);
  }
  while (values.size() < count) {
    const size_t more = std::min(values.size(), count - values.size());
    values.insert(values.end(), values.begin(), values.begin() + more);
  }
  return values;
}

absl::StatusOr<DeviceBuffer> Upload(const Stream& stream,
                                    const std::vector<float>& values,
                                    bool as_bf16) {
  std::vector<uint16_t> halves;
  const void* from = values.data();
  size_t bytes = values.size() * 4;
  if (as_bf16) {
    halves.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) halves[i] = ToBf16(values[i]);
    from = halves.data();
    bytes /= 2;
  }
  FF_ASSIGN_OR_RETURN(DeviceBuffer buffer, DeviceBuffer::Allocate(bytes));
  FF_RETURN_IF_ERROR(stream.CopyAsync(buffer.data(), from, bytes));
  FF_RETURN_IF_ERROR(stream.Synchronize());
  return buffer;
}

// Nothing promises what lies between the channels and the pitch.
void ClearPads(std::vector<float>& values, int channels, int pitch) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<int>(i % pitch) >= channels) values[i] = 0;
  }
}

int RoundUp8(int v) { return (v + 7) / 8 * 8; }

}  // namespace

absl::StatusOr<ConvBench> ConvBench::Make(const Stream& stream,
                                          const ConvCase& c, MathMode mode,
                                          int multiprocessors) {
  ConvBench b(stream, c, mode, multiprocessors);
  const bool bf16 = mode == MathMode::kBf16;
  int h = c.height, w = c.width;
  if (c.resample == Resample::kUp) h /= 2, w /= 2;
  if (c.resample == Resample::kDown) h *= 2, w *= 2;
  const int in_pitch = RoundUp8(c.in_channels);
  const int slots = c.time_taps + c.frames - 1 + 1;
  b.input_ = {nullptr, h, w, c.in_channels, in_pitch, slots, 0, !bf16};
  b.host_input_ = Random(b.input_.FrameElements() * slots, 1, 1.0f, bf16);
  // A slot is a row, so that frames cover many, as in the arena.
  b.input_.slot_elements = int64_t{w} * in_pitch;
  b.input_.slots = slots * h;
  const int taps = c.time_taps * c.window * c.window;
  b.host_weights_ =
      Random(size_t{1} * c.out_channels * c.in_channels * taps, 2,
             static_cast<float>(std::sqrt(3.0 / (c.in_channels * taps))), bf16);
  FF_ASSIGN_OR_RETURN(b.input_data_, Upload(stream, b.host_input_, bf16));
  b.input_.data = b.input_data_.data();
  FF_ASSIGN_OR_RETURN(b.raw_weights_, Upload(stream, b.host_weights_, false));
  b.out_pitch_ = RoundUp8(b.FrameChannels());
  b.out_elements_ = int64_t{1} * c.height * c.width * b.out_pitch_;
  b.host_bias_ = Random(c.out_channels, 3, 0.1f);
  std::vector<float> padded = b.host_bias_;
  padded.resize(2048, 0.0f);
  FF_ASSIGN_OR_RETURN(b.bias_, Upload(stream, padded, false));
  std::vector<float> gamma = Random(c.out_channels, 4, 1.0f);
  gamma.resize(2048, 0.0f);
  FF_ASSIGN_OR_RETURN(b.gamma_, Upload(stream, gamma, false));
  if (c.residual) {
    b.host_residual_ = Random(b.out_elements_ * c.frames, 5, 1.0f);
    ClearPads(b.host_residual_, c.out_channels, b.out_pitch_);
    FF_ASSIGN_OR_RETURN(b.residual_, Upload(stream, b.host_residual_, bf16));
  }
  return b;
}

absl::Status ConvBench::Prepare(ConvKernelKind kind) {
  variant_ = PickConvVariant(kind, mode_, case_.out_channels, case_.window,
                             case_.resample, case_.planes);
  FF_ASSIGN_OR_RETURN(weights_, DeviceBuffer::Allocate(PackedWeightBytes(
                                    variant_, case_.out_channels,
                                    case_.in_channels, case_.time_taps)));
  PackSource source;
  const int taps = case_.time_taps * case_.window * case_.window;
  source.from = raw_weights_.data();
  source.n_stride = int64_t{1} * case_.in_channels * taps;
  source.k_stride = taps;
  source.tap_stride = 1;
  source.n = case_.out_channels;
  source.k = case_.in_channels;
  source.taps = taps;
  source.time_taps = case_.time_taps;
  FF_RETURN_IF_ERROR(
      LaunchPack(variant_, source, weights_.data(), stream_.handle()));
  const bool bf16 = mode_ == MathMode::kBf16;
  const size_t bytes = case_.planes
                           ? size_t{4} * case_.out_channels * case_.frames *
                                 case_.height * case_.width
                           : out_elements_ * OutFrames() * (bf16 ? 2 : 4);
  out_bytes_ = bytes;
  FF_ASSIGN_OR_RETURN(out_, DeviceBuffer::Allocate(2 * bytes));
  FF_RETURN_IF_ERROR(stream_.FillAsync(out_.data(), 0xFF, 2 * bytes));
  return absl::OkStatus();
}

absl::Status ConvBench::Launch() {
  ConvArguments a;
  a.weights = weights_.data();
  a.bias = reinterpret_cast<const float*>(bias_.data());
  a.out = out_.data();
  a.out_pitch = a.norm_pitch = a.residual_pitch = out_pitch_;
  a.out_slot_elements = a.norm_slot_elements = a.residual_slot_elements =
      out_elements_;
  if (case_.split) a.split_channel = FrameChannels();
  a.out_is_float = mode_ != MathMode::kBf16;
  a.plane_frames = case_.planes ? case_.frames : 0;
  a.height = case_.height;
  a.width = case_.width;
  a.out_channels = case_.out_channels;
  a.in_chunks = CeilDivide(case_.in_channels, ChunkChannels(variant_));
  a.time_taps = case_.time_taps;
  a.frames = case_.frames;
  if (case_.residual) a.residual = residual_.data();
  const bool fuse = case_.norm && variant_.kind == ConvKernelKind::kHopper &&
                    CanFuseNorm(variant_, case_.out_channels);
  if (fuse) {
    a.norm_out = out_.data() + out_bytes_;
    a.gamma = reinterpret_cast<const float*>(gamma_.data());
  }
  NormArguments n;
  n.gamma = reinterpret_cast<const float*>(gamma_.data());
  n.frames = case_.frames;
  for (int f = 0; f < case_.frames; ++f) {
    for (int t = 0; t < case_.time_taps; ++t) {
      a.in_slot[f][t] = (f + t) * input_.height;
    }
    if (case_.zero_tap && f == 0) a.in_slot[0][0] = -1;
    a.out_slot[f][0] = f * Sides();
    a.out_slot[f][1] = f * Sides() + 1;
    a.norm_slot[f] = a.residual_slot[f] = f;
    n.from_slot[f] = f;
    n.to_slot[f] = case_.frames + f;
  }
  FF_RETURN_IF_ERROR(
      LaunchConv(variant_, input_, a, multiprocessors_, stream_.handle()));
  if (case_.norm && !fuse) {
    // One arena: `out`, and behind it `norm`.
    FramePool pool = {
        out_.data(), case_.height,     case_.width,   case_.out_channels,
        out_pitch_,  2 * case_.frames, out_elements_, mode_ != MathMode::kBf16};
    FF_RETURN_IF_ERROR(LaunchNorm(pool, n, stream_.handle()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ConvBench::Download(int part) const {
  const bool halves_stored = is_bf16() && !case_.planes;
  std::vector<float> values(out_bytes_ / (halves_stored ? 2 : 4));
  std::vector<uint16_t> halves(halves_stored ? values.size() : 0);
  void* const to =
      halves_stored ? static_cast<void*>(halves.data()) : values.data();
  FF_RETURN_IF_ERROR(
      stream_.CopyAsync(to, out_.data() + part * out_bytes_, out_bytes_));
  FF_RETURN_IF_ERROR(stream_.Synchronize());
  for (size_t i = 0; i < halves.size(); ++i) values[i] = FromBf16(halves[i]);
  if (!case_.planes) ClearPads(values, FrameChannels(), out_pitch_);
  return values;
}

double ConvBench::Expected(int frame, int y, int x, int channel) const {
  const ConvCase& c = case_;
  double sum = host_bias_[channel];
  for (int t = 0; t < c.time_taps; ++t) {
    if (c.zero_tap && frame == 0 && t == 0) continue;
    for (int tap = 0; tap < c.window * c.window; ++tap) {
      const int i = tap / c.window;
      const int j = tap % c.window;
      int sy = y + i - c.window / 2, sx = x + j - c.window / 2;
      int h = input_.height, w = input_.width;
      if (c.resample == Resample::kDown) sy = 2 * y + i, sx = 2 * x + j;
      if (c.resample == Resample::kUp) h *= 2, w *= 2;
      if (sy < 0 || sx < 0 || sy >= h || sx >= w) continue;
      if (c.resample == Resample::kUp) sy /= 2, sx /= 2;
      const float* const pixel =
          &host_input_
              [((int64_t{frame + t} * input_.height + sy) * input_.width + sx) *
               input_.pitch];
      const float* const weight =
          &host_weights_[int64_t{channel} * c.in_channels * Taps() +
                         t * c.window * c.window + tap];
      for (int k = 0; k < c.in_channels; ++k) {
        sum += double{pixel[k]} * weight[int64_t{k} * Taps()];
      }
    }
  }
  return sum;
}

double ConvBench::SampledError(const std::vector<float>& out) const {
  const ConvCase& c = case_;
  double difference = 0, norm = 0;
  uint64_t state = 7;
  const auto next = [&state](int n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int>((state >> 33) % n);
  };
  for (int sample = 0; sample < 400; ++sample) {
    const int f = next(c.frames), y = next(c.height), x = next(c.width);
    const int n = next(c.out_channels);
    const int64_t pixel = int64_t{y} * c.width + x;
    const int64_t at =
        c.planes ? (int64_t{n} * c.frames + f) * c.height * c.width + pixel
                 : (f * Sides() + n / FrameChannels()) * out_elements_ +
                       pixel * out_pitch_ + n % FrameChannels();
    double sum = Expected(f, y, x, n);
    if (c.residual) sum += host_residual_[at];
    difference += (out[at] - sum) * (out[at] - sum);
    norm += sum * sum;
  }
  return std::sqrt(difference / norm);
}

double ConvBench::Flops() const {
  return 2.0 * case_.height * case_.width * case_.frames * case_.in_channels *
         case_.out_channels * Taps();
}

}  // namespace firstframe::cuda::testing
