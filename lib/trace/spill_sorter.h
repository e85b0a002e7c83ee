// Sorts more records than should be in memory: sorted runs go to an unlinked
// temporary file and are merged as they are read.

#ifndef LIB_TRACE_SPILL_SORTER_H_
#define LIB_TRACE_SPILL_SORTER_H_

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {

// Add records in any order, then Sort() once, then take them with Next(). Equal
// records keep the order in which they were added. Holds at most
// `memory_bytes` of records, plus one read buffer a run. Thread-compatible.
template <typename Record, typename Less>
class SpillSorter {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  // `folder` is where the temporary file goes, if it comes to that.
  explicit SpillSorter(size_t memory_bytes, std::string folder = "/tmp",
                       Less less = Less())
      : capacity_(std::max<size_t>(memory_bytes / sizeof(Record), 1024)),
        folder_(std::move(folder)),
        less_(less) {}
  ~SpillSorter() {
    if (fd_ >= 0) ::close(fd_);
  }
  SpillSorter(const SpillSorter&) = delete;
  SpillSorter& operator=(const SpillSorter&) = delete;

  // ResourceExhausted when the temporary file cannot be written.
  absl::Status Add(const Record& record) {
    if (records_.size() == capacity_) FF_RETURN_IF_ERROR(Spill());
    records_.push_back(record);
    ++count_;
    return absl::OkStatus();
  }

  absl::Status Sort() {
    if (runs_.empty()) {
      SortInMemory();
      return absl::OkStatus();
    }
    FF_RETURN_IF_ERROR(Spill());
    records_ = {};
    for (size_t i = 0; i < runs_.size(); ++i) {
      FF_RETURN_IF_ERROR(Refill(i));
      if (!runs_[i].buffer.empty()) heap_.push_back(i);
    }
    std::make_heap(heap_.begin(), heap_.end(), HeapLess());
    return absl::OkStatus();
  }

  // Takes the next record in order; false after the last, or after an I/O
  // error, which status() then holds.
  bool Next(Record* record) {
    if (runs_.empty()) {
      if (at_ == records_.size()) return false;
      *record = records_[at_++];
      return true;
    }
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end(), HeapLess());
    const size_t index = heap_.back();
    Run& run = runs_[index];
    *record = run.buffer[run.at++];
    if (run.at == run.buffer.size()) {
      status_ = Refill(index);
      if (!status_.ok()) return false;
    }
    if (run.at < run.buffer.size()) {
      std::push_heap(heap_.begin(), heap_.end(), HeapLess());
    } else {
      heap_.pop_back();
    }
    return true;
  }

  int64_t size() const { return count_; }
  bool spilled() const { return !runs_.empty(); }
  const absl::Status& status() const { return status_; }

 private:
  static constexpr size_t kRunBufferRecords = 4096;

  struct Run {
    uint64_t offset = 0;  // in records
    uint64_t left = 0;
    std::vector<Record> buffer = {};
    size_t at = 0;
  };

  // A heap whose top is the least record; equal ones by run, which is by age.
  auto HeapLess() {
    return [this](size_t a, size_t b) {
      const Record& left = runs_[a].buffer[runs_[a].at];
      const Record& right = runs_[b].buffer[runs_[b].at];
      if (less_(right, left)) return true;
      if (less_(left, right)) return false;
      return a > b;
    };
  }

  void SortInMemory() {
    if (!std::is_sorted(records_.begin(), records_.end(), less_)) {
      std::stable_sort(records_.begin(), records_.end(), less_);
    }
  }

  absl::Status Spill() {
    if (fd_ < 0) {
      std::string path = absl::StrCat(folder_, "/firstframe_sort_XXXXXX");
      fd_ = ::mkstemp(path.data());
      if (fd_ < 0) {
        return absl::ResourceExhaustedError(absl::StrCat(
            path, ": cannot make a temporary file: ", std::strerror(errno)));
      }
      ::unlink(path.c_str());
    }
    SortInMemory();
    const char* data = reinterpret_cast<const char*>(records_.data());
    size_t left = records_.size() * sizeof(Record);
    while (left > 0) {
      const ssize_t n = ::write(fd_, data, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        return absl::ResourceExhaustedError(
            absl::StrCat("temporary file for sorting: ", std::strerror(errno)));
      }
      data += n;
      left -= n;
    }
    runs_.push_back({.offset = spilled_, .left = records_.size()});
    spilled_ += records_.size();
    records_.clear();
    return absl::OkStatus();
  }

  absl::Status Refill(size_t index) {
    Run& run = runs_[index];
    const size_t want =
        static_cast<size_t>(std::min<uint64_t>(run.left, kRunBufferRecords));
    run.buffer.resize(want);
    run.at = 0;
    char* data = reinterpret_cast<char*>(run.buffer.data());
    size_t got = 0;
    while (got < want * sizeof(Record)) {
      const ssize_t n = ::pread(fd_, data + got, want * sizeof(Record) - got,
                                run.offset * sizeof(Record) + got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        return absl::DataLossError("temporary file for sorting: short read");
      }
      got += n;
    }
    run.offset += want;
    run.left -= want;
    return absl::OkStatus();
  }

  const size_t capacity_;
  const std::string folder_;
  Less less_;
  std::vector<Record> records_;
  size_t at_ = 0;
  int64_t count_ = 0;
  int fd_ = -1;
  uint64_t spilled_ = 0;
  std::vector<Run> runs_;
  std::vector<size_t> heap_;
  absl::Status status_;
};

}  // namespace firstframe

#endif  // LIB_TRACE_SPILL_SORTER_H_
