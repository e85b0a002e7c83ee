#include "lib/flops/measured_peak.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <random>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lib/base/percentile.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/tensor/convert.h"

namespace firstframe {
namespace {

using Clock = std::chrono::steady_clock;

// The widest elements decide what is allocated.
constexpr size_t kMostElementBytes = 4;

// Sums are right to float32's rounding, but for fp8's short accumulator, which
// cuts 13 bits behind the largest addend: up to 3 % of the standard deviation
// at 8192 addends.
constexpr double kMostError = 0.1;

std::vector<float> RandomFloats(size_t count) {
  std::vector<float> values(count);
  std::mt19937 random(1);
  for (float& value : values) {
    value = static_cast<float>(random()) / 2147483648.0f - 1.0f;
  }
  return values;
}

class Measurement {
 public:
  Measurement(const MeasureDevice& device, const MeasureOptions& options,
              const cuda::Stream& stream, const std::vector<float>& values,
              const std::vector<void*>& matrices)
      : device_(device),
        options_(options),
        stream_(stream),
        values_(values),
        left_(matrices[0]),
        right_(matrices[1]),
        out_(matrices[2]) {}

  absl::StatusOr<MeasuredRate> Rate(MathType math, MeasuredPeak& peak) const {
    MeasuredRate rate;
    rate.math = math;
    auto product = device_.create_product(math, options_.size, stream_);
    if (absl::IsUnavailable(product.status())) {
      rate.unavailable_reason = std::string(product.status().message());
      return rate;
    }
    if (!product.ok()) return product.status();
    FF_RETURN_IF_ERROR(Upload(ProductTypesOf(math).in));
    // The first round loads kernels and raises clocks; it is the one checked.
    FF_RETURN_IF_ERROR(TimeNs(**product, options_.products).status());
    FF_ASSIGN_OR_RETURN(rate.largest_error, LargestError(math));
    for (int round = 0; round < options_.rounds; ++round) {
      const auto before = Clock::now();
      FF_ASSIGN_OR_RETURN(const int64_t ns,
                          TimeNs(**product, options_.products));
      peak.wall_s +=
          std::chrono::duration<double>(Clock::now() - before).count();
      peak.event_s += static_cast<double>(ns) / 1e9;
      rate.samples_tflops.push_back(Tflops(options_.products, ns));
    }
    rate.best_tflops = *std::max_element(rate.samples_tflops.begin(),
                                         rate.samples_tflops.end());
    rate.median_tflops = Percentile(rate.samples_tflops, 50);
    if (options_.sustained_s > 0) FF_RETURN_IF_ERROR(Sustain(**product, rate));
    return rate;
  }

  // Bytes a nanosecond, read and written.
  absl::StatusOr<double> CopyRate(size_t size_bytes) const {
    double best = 0;
    for (int round = 0; round < options_.rounds; ++round) {
      FF_ASSIGN_OR_RETURN(const int64_t ns, TimeNs([&] {
                            return stream_.CopyAsync(right_, left_, size_bytes);
                          }));
      if (ns <= 0) continue;
      best = std::max(best, 2.0 * static_cast<double>(size_bytes) /
                                static_cast<double>(ns));
    }
    return best;
  }

 private:
  double Tflops(int64_t products, int64_t ns) const {
    const double n = static_cast<double>(options_.size);
    const double flops = 2 * n * n * n * static_cast<double>(products);
    return flops / static_cast<double>(std::max<int64_t>(ns, 1)) / 1e3;
  }

  // Both factors from the same values, the right one from the middle on, so
  // that they differ.
  absl::Status Upload(DType dtype) const {
    const size_t element_bytes = static_cast<size_t>(DTypeBits(dtype)) / 8;
    std::vector<std::byte> bytes(values_.size() * element_bytes);
    FF_RETURN_IF_ERROR(ConvertFromFloat(values_, dtype, absl::MakeSpan(bytes)));
    const size_t half = bytes.size() / 2;
    auto* const right = static_cast<std::byte*>(right_);
    FF_RETURN_IF_ERROR(stream_.CopyAsync(left_, bytes.data(), bytes.size()));
    FF_RETURN_IF_ERROR(stream_.CopyAsync(right, bytes.data() + half, half));
    FF_RETURN_IF_ERROR(
        stream_.CopyAsync(right + half, bytes.data(), bytes.size() - half));
    return stream_.Synchronize();
  }

  // Compares 64 elements, in as many rows and columns, with sums in double.
  absl::StatusOr<double> LargestError(MathType math) const {
    const auto [in, out] = ProductTypesOf(math);
    const size_t n = static_cast<size_t>(options_.size);
    double largest = 0;
    for (size_t i = 0; i < 64; ++i) {
      const size_t row = (i * 37 + 5) % n;
      const size_t column = (i * 101 + 3) % n;
      FF_ASSIGN_OR_RETURN(const std::vector<float> left,
                          Download(left_, row * n, n, in));
      FF_ASSIGN_OR_RETURN(const std::vector<float> right,
                          Download(right_, column * n, n, in));
      FF_ASSIGN_OR_RETURN(const std::vector<float> found,
                          Download(out_, column * n + row, 1, out));
      double sum = 0;
      for (size_t k = 0; k < n; ++k) {
        sum += static_cast<double>(left[k]) * static_cast<double>(right[k]);
      }
      // Of a product of two uniform values: 1/3.
      const double deviation = std::sqrt(static_cast<double>(n)) / 3;
      const double error =
          std::abs(static_cast<double>(found[0]) - sum) / deviation;
      if (!(error <= kMostError)) {
        return absl::DataLossError(
            absl::StrCat(MathTypeName(math), " product: element [", row, ", ",
                         column, "] is ", found[0], ", expected ", sum));
      }
      largest = std::max(largest, error);
    }
    return largest;
  }

  absl::StatusOr<std::vector<float>> Download(const void* matrix, size_t first,
                                              size_t count, DType dtype) const {
    const size_t element_bytes = static_cast<size_t>(DTypeBits(dtype)) / 8;
    std::vector<std::byte> bytes(count * element_bytes);
    FF_RETURN_IF_ERROR(stream_.CopyAsync(
        bytes.data(),
        static_cast<const std::byte*>(matrix) + first * element_bytes,
        bytes.size()));
    FF_RETURN_IF_ERROR(stream_.Synchronize());
    std::vector<float> values(count);
    FF_RETURN_IF_ERROR(ConvertToFloat(dtype, bytes, absl::MakeSpan(values)));
    return values;
  }

  absl::Status Sustain(MatrixProduct& product, MeasuredRate& rate) const {
    const double product_s = Tflops(1, 1) * 1e-9 / rate.median_tflops;
    constexpr double kMostProducts = 100000;
    const int count = static_cast<int>(
        std::clamp(options_.sustained_s / product_s, 1.0, kMostProducts));
    const std::chrono::duration<double> middle(0.6 * product_s * count);
    FF_ASSIGN_OR_RETURN(
        const int64_t ns,
        TimeNs(
            [&]() -> absl::Status {
              for (int i = 0; i < count; ++i) {
                FF_RETURN_IF_ERROR(product.Enqueue(left_, right_, out_));
              }
              return absl::OkStatus();
            },
            [&] {
              if (!device_.read_state) return;
              std::this_thread::sleep_for(middle);
              rate.state = device_.read_state();
            }));
    rate.sustained_tflops = Tflops(count, ns);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> TimeNs(MatrixProduct& product, int count) const {
    return TimeNs([&]() -> absl::Status {
      for (int i = 0; i < count; ++i) {
        FF_RETURN_IF_ERROR(product.Enqueue(left_, right_, out_));
      }
      return absl::OkStatus();
    });
  }

  // Enqueues `work` between two events, calls `meanwhile`, and returns the
  // device time.
  template <typename Work, typename Meanwhile>
  absl::StatusOr<int64_t> TimeNs(const Work& work,
                                 const Meanwhile& meanwhile) const {
    cuda::Runtime& runtime = device_.runtime;
    FF_ASSIGN_OR_RETURN(cuda::Event start,
                        cuda::Event::Create(cuda::EventKind::kTiming, runtime));
    FF_ASSIGN_OR_RETURN(cuda::Event end,
                        cuda::Event::Create(cuda::EventKind::kTiming, runtime));
    FF_RETURN_IF_ERROR(start.Record(stream_.handle()));
    FF_RETURN_IF_ERROR(work());
    FF_RETURN_IF_ERROR(end.Record(stream_.handle()));
    meanwhile();
    FF_RETURN_IF_ERROR(stream_.Synchronize());
    return cuda::Event::ElapsedNs(start, end);
  }
  template <typename Work>
  absl::StatusOr<int64_t> TimeNs(const Work& work) const {
    return TimeNs(work, [] {});
  }

  const MeasureDevice& device_;
  const MeasureOptions& options_;
  const cuda::Stream& stream_;
  const std::vector<float>& values_;
  void* const left_;
  void* const right_;
  void* const out_;
};

absl::Status Validate(const MeasureOptions& options) {
  constexpr int64_t kMaxSize = 32768;
  if (options.size < 16 || options.size > kMaxSize || options.size % 16 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("matrices of ", options.size,
                     ", expected a multiple of 16 up to ", kMaxSize));
  }
  if (options.rounds < 1 || options.products < 1 ||
      !(options.sustained_s >= 0 && options.sustained_s <= 60)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.rounds, " rounds of ", options.products,
                     " products and ", options.sustained_s,
                     " s, expected at least one of each and 0 to 60 s"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> BestTflops(const MeasuredPeak& peak, MathType math) {
  std::string reason = "it was not measured";
  for (const MeasuredRate& rate : peak.rates) {
    if (rate.math != math) continue;
    if (rate.unavailable_reason.empty()) return rate.best_tflops;
    reason = rate.unavailable_reason;
  }
  return absl::UnavailableError(
      absl::StrCat("no measured ", MathTypeName(math), " rate: ", reason));
}

absl::StatusOr<MeasuredPeak> MeasurePeak(const MeasureDevice& device,
                                         const MeasureOptions& options) {
  FF_RETURN_IF_ERROR(Validate(options));
  cuda::Runtime& runtime = device.runtime;
  FF_ASSIGN_OR_RETURN(const int ordinal, runtime.CurrentDevice());
  FF_RETURN_IF_ERROR(runtime.SetDevice(ordinal));
  FF_ASSIGN_OR_RETURN(const cuda::DeviceProperties properties,
                      runtime.GetProperties(ordinal));
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream,
                      cuda::Stream::Create(0, runtime));
  const size_t count = static_cast<size_t>(options.size * options.size);
  std::vector<void*> matrices;
  const absl::Cleanup free = [&] {
    for (void* matrix : matrices) runtime.Free(matrix).IgnoreError();
  };
  for (int i = 0; i < 3; ++i) {
    FF_ASSIGN_OR_RETURN(void* const matrix,
                        runtime.Allocate(count * kMostElementBytes));
    matrices.push_back(matrix);
  }
  MeasuredPeak peak;
  peak.device_name = properties.name;
  peak.size = options.size;
  const std::vector<float> values = RandomFloats(count);
  const Measurement measurement(device, options, stream, values, matrices);
  for (const MathType math : options.math) {
    FF_ASSIGN_OR_RETURN(MeasuredRate rate, measurement.Rate(math, peak));
    peak.rates.push_back(std::move(rate));
  }
  FF_ASSIGN_OR_RETURN(peak.copy_gb_per_s,
                      measurement.CopyRate(count * kMostElementBytes));
  return peak;
}

absl::StatusOr<MeasuredPeak> MeasurePeak(cuda::Runtime& runtime,
                                         const cuda::LibrarySearch& search,
                                         const MeasureOptions& options) {
  FF_ASSIGN_OR_RETURN(const int ordinal, runtime.CurrentDevice());
  FF_ASSIGN_OR_RETURN(const cuda::DeviceProperties properties,
                      runtime.GetProperties(ordinal));
  const absl::StatusOr<DeviceStateReader> states =
      DeviceStateReader::Open(properties.pci_bus_id, search);
  MeasureDevice device{.runtime = runtime};
  device.create_product = [&search](MathType math, int64_t size,
                                    const cuda::Stream& stream) {
    return CreateMatrixProduct(math, size, stream, search);
  };
  if (states.ok()) device.read_state = [&states] { return states->Read(); };
  FF_ASSIGN_OR_RETURN(MeasuredPeak peak, MeasurePeak(device, options));
  if (!states.ok()) peak.state_reason = std::string(states.status().message());
  const bool has_rate =
      std::any_of(peak.rates.begin(), peak.rates.end(),
                  [](const auto& rate) { return rate.best_tflops > 0; });
  if (!has_rate && !peak.rates.empty()) {
    return absl::UnavailableError(peak.rates[0].unavailable_reason);
  }
  return peak;
}

}  // namespace firstframe
