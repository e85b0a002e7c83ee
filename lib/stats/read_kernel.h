// The yardstick of device_stats_benchmark: one plain read of device memory.

#ifndef LIB_STATS_READ_KERNEL_H_
#define LIB_STATS_READ_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"

namespace firstframe {

// Enqueues a kernel that loads every 16-byte word of `data` and keeps their
// exclusive or; `blocks` of 256 threads. `sink` takes 4 bytes.
absl::Status LaunchRead(const void* data, int64_t size_bytes, int blocks,
                        void* sink, void* stream);

// Fills `count` bfloat16 with values about N(0, 1) shaped: noise in [-2, 2).
absl::Status LaunchFillNoise(void* data, int64_t count, void* stream);

}  // namespace firstframe

#endif  // LIB_STATS_READ_KERNEL_H_
