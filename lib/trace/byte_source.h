// A file, or standard input, as a stream of unpacked bytes.

#ifndef LIB_TRACE_BYTE_SOURCE_H_
#define LIB_TRACE_BYTE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace firstframe {

// Thread-compatible.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Opens `path` ("-": standard input). Gzip, also of several members, is told
  // by its first bytes and unpacked. Codes from errno, with the path.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(
      const std::string& path);

  // Reads up to `capacity` bytes into `buffer` and returns how many; 0 at the
  // end. DataLoss for a broken gzip stream; what was unpacked before the break
  // is returned first.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t capacity) = 0;

  // Whether the gzip stream stopped before its end: a file that was still being
  // written. Known after Read returned 0.
  bool truncated() const { return truncated_; }

 protected:
  bool truncated_ = false;
};

}  // namespace firstframe

#endif  // LIB_TRACE_BYTE_SOURCE_H_
