// Reads in flight: several direct reads of one thread at once, by io_uring, or
// one after the other by pread where io_uring is missing or forbidden (most
// container runtimes forbid it).

#ifndef LIB_LOAD_READ_QUEUE_H_
#define LIB_LOAD_READ_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/load/data_file.h"

namespace firstframe {

// Thread-compatible: one thread's. Slots are numbered by the caller.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;

  // "io_uring" or "pread".
  virtual absl::string_view method() const = 0;

  // Starts filling slot `slot` from `offset`: `size` bytes are asked, and the
  // read is complete with `least` of them (a direct read asks for whole blocks
  // past the file's end). `file` must outlive the read. At most one read a slot
  // at a time.
  virtual absl::Status Start(int slot, const DataFile& file, uint64_t offset,
                             size_t size, size_t least) = 0;

  // Waits for one started read to be complete and returns its slot. The error
  // of a failed read is typed as DataFile::Read's.
  virtual absl::StatusOr<int> WaitOne() = 0;

  virtual int in_flight() const = 0;
};

// Makes a queue over slots of equal size that begin at `memory` and follow each
// other, aligned for direct reads. The memory must outlive the queue.
//
// MakeUringQueue: Unavailable, with the kernel's reason, where io_uring cannot
// be used. Buffers are registered when the memory limits allow it.
absl::StatusOr<std::unique_ptr<ReadQueue>> MakeUringQueue(std::byte* memory,
                                                          size_t slot_bytes,
                                                          int num_slots);
std::unique_ptr<ReadQueue> MakePreadQueue(std::byte* memory, size_t slot_bytes,
                                          int num_slots);

}  // namespace firstframe

#endif  // LIB_LOAD_READ_QUEUE_H_
