// Times the statistics kernel beside one plain read of the same memory.
//
//   device_stats_benchmark [GIBIBYTES]
//
// Prints one JSON line per variant: all samples, the best, and its ratio to the
// best read. Alternates read and statistics, 9 rounds.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/stats/device_stats.h"
#include "lib/stats/read_kernel.h"

namespace firstframe {
namespace {

constexpr int kRounds = 9;

struct Variant {
  const char* name;
  DType dtype;
  StatsRequest request;
};
constexpr StatsRequest kMoments = {};
constexpr StatsRequest kSketch = {.sketch = true};
constexpr StatsRequest kHashes = {.hashes = true};
constexpr StatsRequest kBoth = {.hashes = true, .sketch = true};
constexpr StatsRequest kAll = {
    .hashes = true, .sketch = true, .exponents = true, .samples = true};
constexpr Variant kVariants[] = {
    {"bf16 moments", DType::kBF16, kMoments},
    {"bf16 moments+sketch", DType::kBF16, kSketch},
    {"bf16 moments+hashes", DType::kBF16, kHashes},
    {"bf16 moments+sketch+hashes", DType::kBF16, kBoth},
    {"bf16 all", DType::kBF16, kAll},
    {"f16 moments+sketch+hashes", DType::kF16, kBoth},
    {"f32 moments", DType::kF32, kMoments},
    {"f32 moments+sketch+hashes", DType::kF32, kBoth},
    {"f8 moments+sketch+hashes", DType::kF8E4M3, kBoth},
};

template <typename Function>
absl::StatusOr<double> TimeMs(const cuda::Stream& stream, Function enqueue) {
  FF_ASSIGN_OR_RETURN(cuda::Event start,
                      cuda::Event::Create(cuda::EventKind::kTiming));
  FF_ASSIGN_OR_RETURN(cuda::Event end,
                      cuda::Event::Create(cuda::EventKind::kTiming));
  FF_RETURN_IF_ERROR(start.Record(stream.handle()));
  FF_RETURN_IF_ERROR(enqueue());
  FF_RETURN_IF_ERROR(end.Record(stream.handle()));
  FF_RETURN_IF_ERROR(end.Synchronize());
  FF_ASSIGN_OR_RETURN(const int64_t ns, cuda::Event::ElapsedNs(start, end));
  return static_cast<double>(ns) * 1e-6;
}

void Print(const char* name, std::vector<double> samples, double read_ms,
           int64_t size_bytes) {
  std::string list;
  for (const double ms : samples) {
    absl::StrAppendFormat(&list, "%s%.4f", list.empty() ? "" : ",", ms);
  }
  const double best = *std::min_element(samples.begin(), samples.end());
  absl::PrintF(
      "{\"kind\":\"measurement\",\"name\":\"%s\",\"size_bytes\":%d,"
      "\"samples_ms\":[%s],\"best_ms\":%.4f,\"gb_per_s\":%.1f,"
      "\"ratio_to_read\":%.3f}\n",
      name, size_bytes, list, best, size_bytes / best * 1e-6, best / read_ms);
}

absl::Status Run(int64_t size_bytes) {
  FF_ASSIGN_OR_RETURN(const cuda::Stream stream, cuda::Stream::Create());
  FF_ASSIGN_OR_RETURN(const cuda::DeviceBuffer data,
                      cuda::DeviceBuffer::Allocate(size_bytes));
  FF_ASSIGN_OR_RETURN(const cuda::DeviceBuffer sink,
                      cuda::DeviceBuffer::Allocate(256));
  FF_RETURN_IF_ERROR(
      LaunchFillNoise(data.data(), size_bytes / 2, stream.handle()));
  FF_ASSIGN_OR_RETURN(const auto stats, DeviceStats::Create());
  std::vector<double> reads;
  std::vector<std::vector<double>> samples(std::size(kVariants));
  for (int round = 0; round <= kRounds; ++round) {
    for (const int blocks : {528, 1056, 2112}) {
      FF_ASSIGN_OR_RETURN(const double read, TimeMs(stream, [&] {
                            return LaunchRead(data.data(), size_bytes, blocks,
                                              sink.data(), stream.handle());
                          }));
      if (round > 0) reads.push_back(read);
    }
    for (size_t i = 0; i < std::size(kVariants); ++i) {
      const Variant& v = kVariants[i];
      const int64_t numel = size_bytes * 8 / DTypeBits(v.dtype);
      FF_ASSIGN_OR_RETURN(const double ms, TimeMs(stream, [&] {
                            return stats->EnqueueKernel(data.data(), v.dtype,
                                                        numel, v.request,
                                                        stream.handle());
                          }));
      if (round > 0) samples[i].push_back(ms);  // round 0 warms up
    }
  }
  const double read_ms = *std::min_element(reads.begin(), reads.end());
  Print("plain read", reads, read_ms, size_bytes);
  for (size_t i = 0; i < std::size(kVariants); ++i) {
    Print(kVariants[i].name, samples[i], read_ms, size_bytes);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  const double gibibytes = argc > 1 ? std::atof(argv[1]) : 2;
  const absl::Status status =
      firstframe::Run(static_cast<int64_t>(gibibytes * (1 << 30)));
  if (status.ok()) return 0;
  std::fprintf(stderr, "device_stats_benchmark: %s\n",
               std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kUnavailable ||
                 status.code() == absl::StatusCode::kUnimplemented
             ? 3
             : 2;
}
