#include "lib/load/read_queue.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <unistd.h>

#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

struct Request {
  const DataFile* file = nullptr;
  uint64_t offset = 0;
  size_t size = 0;
  size_t least = 0;
  size_t done = 0;
};

class PreadQueue final : public ReadQueue {
 public:
  PreadQueue(std::byte* memory, size_t slot_bytes, int num_slots)
      : memory_(memory), slot_bytes_(slot_bytes), requests_(num_slots) {}

  absl::string_view method() const override { return "pread"; }

  absl::Status Start(int slot, const DataFile& file, uint64_t offset,
                     size_t size, size_t least) override {
    FF_CHECK(size <= slot_bytes_ && least <= size);
    requests_[slot] = {&file, offset, size, least, 0};
    order_.push_back(slot);
    return absl::OkStatus();
  }

  absl::StatusOr<int> WaitOne() override {
    FF_CHECK(!order_.empty());
    const int slot = order_.front();
    order_.pop_front();
    const Request& request = requests_[slot];
    size_t done = 0;
    while (done < request.least) {
      const ssize_t n = ::pread(
          request.file->fd(), memory_ + slot * slot_bytes_ + done,
          request.size - done, static_cast<off_t>(request.offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        return absl::ErrnoToStatus(
            errno, absl::StrCat(request.file->path(), ": cannot read at byte ",
                                request.offset + done));
      }
      if (n == 0) {
        return request.file->ShortRead(request.offset, request.least, done);
      }
      done += static_cast<size_t>(n);
    }
    return slot;
  }

  int in_flight() const override { return static_cast<int>(order_.size()); }

 private:
  std::byte* const memory_;
  const size_t slot_bytes_;
  std::vector<Request> requests_;
  std::deque<int> order_;
};

class UringQueue final : public ReadQueue {
 public:
  UringQueue(io_uring ring, bool has_fixed_buffers, std::byte* memory,
             size_t slot_bytes, int num_slots)
      : ring_(ring),
        has_fixed_buffers_(has_fixed_buffers),
        memory_(memory),
        slot_bytes_(slot_bytes),
        requests_(num_slots) {}

  ~UringQueue() override {
    // The kernel writes into the slots until their reads are complete.
    while (in_flight_ > 0) {
      io_uring_cqe* entry;
      if (::io_uring_wait_cqe(&ring_, &entry) != 0) break;
      ::io_uring_cqe_seen(&ring_, entry);
      --in_flight_;
    }
    ::io_uring_queue_exit(&ring_);
  }

  absl::string_view method() const override { return "io_uring"; }

  absl::Status Start(int slot, const DataFile& file, uint64_t offset,
                     size_t size, size_t least) override {
    FF_CHECK(size <= slot_bytes_ && least <= size);
    requests_[slot] = {&file, offset, size, least, 0};
    return Submit(slot);
  }

  absl::StatusOr<int> WaitOne() override {
    while (true) {
      io_uring_cqe* entry;
      const int rc = ::io_uring_wait_cqe(&ring_, &entry);
      if (rc == -EINTR) continue;
      if (rc != 0) return absl::ErrnoToStatus(-rc, "io_uring wait");
      const int slot = static_cast<int>(::io_uring_cqe_get_data64(entry));
      const int result = entry->res;
      ::io_uring_cqe_seen(&ring_, entry);
      --in_flight_;
      Request& request = requests_[slot];
      if (result == -EINTR || result == -EAGAIN) {
        FF_RETURN_IF_ERROR(Submit(slot));
        continue;
      }
      if (result < 0) {
        return absl::ErrnoToStatus(
            -result,
            absl::StrCat(request.file->path(), ": cannot read at byte ",
                         request.offset + request.done));
      }
      request.done += static_cast<size_t>(result);
      if (request.done >= request.least) return slot;
      if (result == 0) {
        return request.file->ShortRead(request.offset, request.least,
                                       request.done);
      }
      FF_RETURN_IF_ERROR(Submit(slot));
    }
  }

  int in_flight() const override { return in_flight_; }

 private:
  absl::Status Submit(int slot) {
    const Request& request = requests_[slot];
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    FF_CHECK(entry != nullptr);
    std::byte* to = memory_ + slot * slot_bytes_ + request.done;
    const unsigned size = static_cast<unsigned>(request.size - request.done);
    const uint64_t offset = request.offset + request.done;
    if (has_fixed_buffers_) {
      ::io_uring_prep_read_fixed(entry, request.file->fd(), to, size, offset,
                                 0);
    } else {
      ::io_uring_prep_read(entry, request.file->fd(), to, size, offset);
    }
    ::io_uring_sqe_set_data64(entry, static_cast<uint64_t>(slot));
    int rc;
    do {
      rc = ::io_uring_submit(&ring_);
    } while (rc == -EINTR || rc == -EAGAIN);
    if (rc < 0) return absl::ErrnoToStatus(-rc, "io_uring submit");
    ++in_flight_;
    return absl::OkStatus();
  }

  io_uring ring_;
  const bool has_fixed_buffers_;
  std::byte* const memory_;
  const size_t slot_bytes_;
  std::vector<Request> requests_;
  int in_flight_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReadQueue>> MakeUringQueue(std::byte* memory,
                                                          size_t slot_bytes,
                                                          int num_slots) {
  io_uring ring;
  const int rc =
      ::io_uring_queue_init(static_cast<unsigned>(num_slots), &ring, 0);
  if (rc != 0) {
    return absl::UnavailableError(
        absl::StrCat("io_uring cannot be used here: ", ::strerror(-rc)));
  }
  // One buffer over all slots; it may exceed RLIMIT_MEMLOCK, and then each read
  // pins its pages for itself.
  const iovec all = {memory, slot_bytes * num_slots};
  const bool is_registered = ::io_uring_register_buffers(&ring, &all, 1) == 0;
  return std::make_unique<UringQueue>(ring, is_registered, memory, slot_bytes,
                                      num_slots);
}

std::unique_ptr<ReadQueue> MakePreadQueue(std::byte* memory, size_t slot_bytes,
                                          int num_slots) {
  return std::make_unique<PreadQueue>(memory, slot_bytes, num_slots);
}

}  // namespace firstframe
