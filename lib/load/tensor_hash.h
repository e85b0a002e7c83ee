// A 64-bit hash of a tensor's bytes that any number of threads, on a CPU or a
// GPU, can compute in parts and in any order: to prove that what arrived is
// what the file holds. Not cryptographic.
//
//   sum over words w_i (8 bytes, little-endian, the last padded with zeros) of
//   mix(w_i + (i + 1) * 0x9E3779B97F4A7C15), modulo 2^64, plus the size in
//   bytes
//
// mix is splitmix64's finaliser (Steele, Lea, Flood, OOPSLA 2014). A word that
// is changed or moved changes its term; equal sums by chance are 1 in 2^64.

#ifndef LIB_LOAD_TENSOR_HASH_H_
#define LIB_LOAD_TENSOR_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/cuda/runtime.h"
#include "lib/load/plan.h"

namespace firstframe {

// Returns the sum of the terms of `bytes`, which begin at byte `offset` (a
// multiple of 8) of the tensor. Only the tensor's last part may have a size
// that is no multiple of 8.
uint64_t HashTensorPart(uint64_t offset, absl::Span<const std::byte> bytes);

// Returns the hash of a whole tensor.
inline uint64_t HashTensor(absl::Span<const std::byte> bytes) {
  return HashTensorPart(0, bytes) + bytes.size();
}

// Hashes the tensors of `plan` in the arena in host memory, with `threads`.
std::vector<uint64_t> HashHostArena(const LoadPlan& plan,
                                    const std::byte* arena, int threads);

// Same, in the memory of the current device; waits for it. Unimplemented in a
// build without CUDA. Takes about as long as reading the arena once.
absl::StatusOr<std::vector<uint64_t>> HashDeviceArena(const LoadPlan& plan,
                                                      const std::byte* arena,
                                                      cuda::Runtime& runtime);

// Hashes the tensors of `plan` as their files hold them, by plain buffered
// reads of one tensor after the other on each thread: none of the loader's
// paths.
absl::StatusOr<std::vector<uint64_t>> HashFiles(const LoadPlan& plan,
                                                int threads);

}  // namespace firstframe

#endif  // LIB_LOAD_TENSOR_HASH_H_
