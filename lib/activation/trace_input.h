// The bytes of a trace: a mapped file, a decompressed one, or a pipe.

#ifndef LIB_ACTIVATION_TRACE_INPUT_H_
#define LIB_ACTIVATION_TRACE_INPUT_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Movable; the view is valid for as long as the object (moves included).
class TraceInput {
 public:
  // Opens `path`, or reads descriptor 0 for "-". Regular files are mapped;
  // pipes are read to their end. Data that begins with the magic number of
  // gzip or zstd is decompressed, whatever its name. Codes from errno; DataLoss
  // for compressed data that is damaged or truncated; ResourceExhausted beyond
  // 64 GiB of decompressed data.
  static absl::StatusOr<TraceInput> Open(const std::string& path);

  // Takes `text` as it is, decompressing as above.
  static absl::StatusOr<TraceInput> FromString(std::string text,
                                               std::string name);

  TraceInput(TraceInput&& other) noexcept { *this = std::move(other); }
  TraceInput& operator=(TraceInput&& other) noexcept;
  ~TraceInput();

  absl::string_view text() const {
    return mapping_ != nullptr
               ? absl::string_view(static_cast<const char*>(mapping_), size_)
               : absl::string_view(owned_);
  }
  const std::string& name() const { return name_; }

 private:
  TraceInput() = default;
  void Unmap();

  std::string name_;
  void* mapping_ = nullptr;
  size_t size_ = 0;
  std::string owned_;
};

// Opens two. Streams (pipes, devices, "-") are read at the same time, by two
// threads, for one process may write both and wait for whichever is not read.
// The error of the left one when both fail.
absl::StatusOr<std::pair<TraceInput, TraceInput>> OpenTracePair(
    const std::string& left, const std::string& right);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_INPUT_H_
