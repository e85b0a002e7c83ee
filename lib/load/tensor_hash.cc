#include "lib/load/tensor_hash.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "lib/base/run_threads.h"
#include "lib/base/status_macros.h"
#include "lib/load/data_file.h"
#include "lib/load/tensor_hash_device.h"

namespace firstframe {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
constexpr uint64_t kChunkBytes = 1 << 20;

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Calls `work(tensor index)` for every tensor, on `threads` threads.
void ForEachTensor(const LoadPlan& plan, int threads,
                   const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  RunOnThreads(threads, [&](int) {
    while (true) {
      const size_t i = next.fetch_add(1);
      if (i >= plan.tensors.size()) return;
      work(i);
    }
  });
}

absl::StatusOr<uint64_t> HashOfFile(const DataFile& file,
                                    const SourceTensor& tensor,
                                    std::vector<std::byte>* buffer) {
  uint64_t sum = 0;
  for (uint64_t at = 0; at < tensor.size_bytes; at += kChunkBytes) {
    const uint64_t size = std::min(kChunkBytes, tensor.size_bytes - at);
    const absl::Span<std::byte> part = absl::MakeSpan(buffer->data(), size);
    FF_RETURN_IF_ERROR(file.Read(tensor.file_offset + at, part));
    sum += HashTensorPart(at, part);
  }
  return sum + tensor.size_bytes;
}

}  // namespace

uint64_t HashTensorPart(uint64_t offset, absl::Span<const std::byte> bytes) {
  uint64_t index = offset / 8 + 1;
  uint64_t sum = 0;
  const size_t words = bytes.size() / 8;
  for (size_t i = 0; i < words; ++i, ++index) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i * 8, 8);
    sum += Mix(word + index * kGolden);
  }
  if (const size_t rest = bytes.size() % 8; rest > 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + words * 8, rest);
    sum += Mix(word + index * kGolden);
  }
  return sum;
}

std::vector<uint64_t> HashHostArena(const LoadPlan& plan,
                                    const std::byte* arena, int threads) {
  std::vector<uint64_t> hashes(plan.tensors.size());
  ForEachTensor(plan, threads, [&](size_t i) {
    const PlannedTensor& tensor = plan.tensors[i];
    hashes[i] = HashTensor(
        absl::MakeSpan(arena + tensor.arena_offset, tensor.source.size_bytes));
  });
  return hashes;
}

absl::StatusOr<std::vector<uint64_t>> HashDeviceArena(const LoadPlan& plan,
                                                      const std::byte* arena,
                                                      cuda::Runtime& runtime) {
  std::vector<HashChunk> chunks;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    for (uint64_t at = 0; at < tensor.source.size_bytes; at += kChunkBytes) {
      HashChunk chunk;
      chunk.arena_offset = tensor.arena_offset + at;
      chunk.tensor_offset = at;
      chunk.size_bytes = std::min(kChunkBytes, tensor.source.size_bytes - at);
      chunk.tensor = static_cast<uint32_t>(i);
      chunks.push_back(chunk);
    }
  }
  std::vector<uint64_t> sums(plan.tensors.size());
  FF_RETURN_IF_ERROR(
      SumChunksOnDevice(arena, chunks, absl::MakeSpan(sums), runtime));
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] += plan.tensors[i].source.size_bytes;
  }
  return sums;
}

absl::StatusOr<std::vector<uint64_t>> HashFiles(const LoadPlan& plan,
                                                int threads) {
  std::vector<DataFile> files;
  for (const std::string& path : plan.paths) {
    FF_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
    files.push_back(std::move(file));
  }
  std::vector<uint64_t> hashes(plan.tensors.size());
  std::vector<absl::Status> statuses(plan.tensors.size());
  ForEachTensor(plan, threads, [&](size_t i) {
    thread_local std::vector<std::byte> buffer(kChunkBytes);
    const SourceTensor& tensor = plan.tensors[i].source;
    const absl::StatusOr<uint64_t> hash =
        HashOfFile(files[tensor.file], tensor, &buffer);
    if (hash.ok()) {
      hashes[i] = *hash;
    } else {
      statuses[i] = hash.status();
    }
  });
  for (const absl::Status& status : statuses) FF_RETURN_IF_ERROR(status);
  return hashes;
}

}  // namespace firstframe
