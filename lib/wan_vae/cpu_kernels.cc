#include "lib/wan_vae/cpu_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lib/wan_vae/parallel.h"

// One binary, the widest vectors of the machine it runs on.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FF_WIDE_VECTORS \
  __attribute__((       \
      target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define FF_WIDE_VECTORS
#endif

namespace firstframe {
namespace {

// Floats that one thread should get at least: below it, waking another costs
// more than it saves.
constexpr int64_t kGrain = 16 << 10;

// exp(x) to 1 ulp for x <= 88, in arithmetic that vectorises: 2^n * p(r) with
// |r| <= ln(2) / 2. Coefficients are the Taylor series to r^7, whose remainder
// there is below 2^-27. Below -87 the result is 0 (or tiny), never NaN.
inline float FastExp(float x) {
  constexpr float kLog2E = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: rounds to an integer
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  const int32_t exponent =
      std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  return p * std::bit_cast<float>((exponent + 127) << 23);
}

inline float SiluOf(float x) { return x / (1.0f + FastExp(-x)); }

constexpr int kLanes = 16;

// The sum of squares in kLanes partial sums, as vectors add them.
inline float SumOfSquares(const float* row, int64_t channels) {
  float partial[kLanes] = {};
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      partial[lane] += row[c + lane] * row[c + lane];
    }
  }
  for (; c < channels; ++c) partial[c % kLanes] += row[c] * row[c];
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane)
      partial[lane] += partial[lane + width];
  }
  return partial[0];
}

FF_WIDE_VECTORS void NormalizeRange(const float* input, int64_t rows,
                                    int64_t channels, const float* gamma,
                                    bool silu, float* output, int64_t groups,
                                    int64_t group_stride) {
  const float root = std::sqrt(static_cast<float>(channels));
  const int64_t width = channels / groups;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = input + r * channels;
    const float norm = std::sqrt(SumOfSquares(row, channels));
    const float scale = root / std::max(norm, 1e-12f);
    for (int64_t g = 0; g < groups; ++g) {
      const float* x = row + g * width;
      const float* factor = gamma + g * width;
      float* y = output + g * group_stride + r * width;
      if (silu) {
        for (int64_t c = 0; c < width; ++c)
          y[c] = SiluOf(x[c] * scale * factor[c]);
      } else {
        for (int64_t c = 0; c < width; ++c) y[c] = x[c] * scale * factor[c];
      }
    }
  }
}

FF_WIDE_VECTORS void SiluRange(float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = SiluOf(values[i]);
}

FF_WIDE_VECTORS void AddRange(float* sum, const float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += values[i];
}

FF_WIDE_VECTORS void SoftmaxRange(float* scores, int64_t rows, int64_t columns,
                                  float scale) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * columns;
    float most = row[0];
    for (int64_t c = 1; c < columns; ++c) most = std::max(most, row[c]);
    for (int64_t c = 0; c < columns; ++c)
      row[c] = FastExp((row[c] - most) * scale);
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c];
    const float inverse = static_cast<float>(1.0 / sum);
    for (int64_t c = 0; c < columns; ++c) row[c] *= inverse;
  }
}

// Positions that a transpose handles at a time: a tile stays in the first
// cache.
constexpr int64_t kTile = 64;

}  // namespace

void NormalizeRows(const float* input, int64_t rows, int64_t channels,
                   const float* gamma, bool silu, float* output, int64_t groups,
                   int64_t group_stride) {
  ParallelFor(rows, kGrain / channels + 1, [&](int64_t begin, int64_t end) {
    NormalizeRange(input + begin * channels, end - begin, channels, gamma, silu,
                   output + begin * (channels / groups), groups, group_stride);
  });
}

void SplitRows(const float* input, int64_t rows, int64_t channels,
               float* output, int64_t groups, int64_t group_stride) {
  const int64_t width = channels / groups;
  ParallelFor(rows, kGrain / channels + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t g = 0; g < groups; ++g) {
        std::memcpy(output + g * group_stride + r * width,
                    input + r * channels + g * width, width * sizeof(float));
      }
    }
  });
}

void Silu(float* values, int64_t count) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    SiluRange(values + begin, end - begin);
  });
}

void AddTo(float* sum, const float* values, int64_t count) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    AddRange(sum + begin, values + begin, end - begin);
  });
}

void SoftmaxRows(float* scores, int64_t rows, int64_t columns, float scale) {
  ParallelFor(rows, kGrain / columns + 1, [&](int64_t begin, int64_t end) {
    SoftmaxRange(scores + begin * columns, end - begin, columns, scale);
  });
}

void CopyBlocks(const float* from, int64_t from_stride, float* to,
                int64_t to_stride, int64_t count, int64_t block) {
  constexpr int64_t kPiece = 4 * kGrain;
  const int64_t pieces = (block + kPiece - 1) / kPiece;
  const int64_t grain = kPiece / std::min(kPiece, block) + 1;
  ParallelFor(count * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t item = i / pieces, at = i % pieces * kPiece;
      std::memcpy(to + item * to_stride + at, from + item * from_stride + at,
                  std::min(kPiece, block - at) * sizeof(float));
    }
  });
}

void UpsampleNearest(const float* input, int64_t images, int64_t height,
                     int64_t width, int64_t channels, int64_t fold,
                     float* output) {
  const int64_t rows = images * fold * height;
  const int64_t grain = kGrain / (4 * width * channels) + 1;
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t y = r % height, half = r / height % fold;
      const int64_t image = r / height / fold;
      const float* from = input +
                          (image * height + y) * width * fold * channels +
                          half * channels;
      float* const to = output + r * 2 * (2 * width * channels);
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t copy = 0; copy < 2; ++copy) {
          std::memcpy(to + (2 * x + copy) * channels,
                      from + x * fold * channels, channels * sizeof(float));
        }
      }
      std::memcpy(to + 2 * width * channels, to,
                  2 * width * channels * sizeof(float));
    }
  });
}

void ToChannelsFirst(const float* input, int64_t outer, int64_t positions,
                     int64_t channels, int64_t outer_stride,
                     int64_t plane_stride, float* output) {
  const int64_t tiles = (positions + kTile - 1) / kTile;
  ParallelFor(outer * tiles, kGrain / (kTile * channels) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t o = i / tiles, first = i % tiles * kTile;
                  const int64_t last = std::min(first + kTile, positions);
                  for (int64_t c = 0; c < channels; ++c) {
                    float* to = output + o * outer_stride + c * plane_stride;
                    const float* from = input + o * positions * channels + c;
                    for (int64_t p = first; p < last; ++p)
                      to[p] = from[p * channels];
                  }
                }
              });
}

void ToChannelsLast(const float* input, int64_t outer, int64_t positions,
                    int64_t channels, int64_t outer_stride,
                    int64_t plane_stride, float* output) {
  const int64_t tiles = (positions + kTile - 1) / kTile;
  ParallelFor(outer * tiles, kGrain / (kTile * channels) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t o = i / tiles, first = i % tiles * kTile;
                  const int64_t last = std::min(first + kTile, positions);
                  for (int64_t c = 0; c < channels; ++c) {
                    const float* from =
                        input + o * outer_stride + c * plane_stride;
                    float* to = output + o * positions * channels + c;
                    for (int64_t p = first; p < last; ++p)
                      to[p * channels] = from[p];
                  }
                }
              });
}

}  // namespace firstframe
