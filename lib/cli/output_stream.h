// An std::ostream over standard output or an OutputFile that remembers why a
// write failed.

#ifndef LIB_CLI_OUTPUT_STREAM_H_
#define LIB_CLI_OUTPUT_STREAM_H_

#include <memory>
#include <ostream>

#include "absl/status/status.h"
#include "lib/base/output_file.h"

namespace firstframe::cli {

// Buffered (64 KiB); std::flush writes through. SIGPIPE keeps its default
// action: a reader that has gone ends the process, as in any Unix filter.
class OutputStream : public std::ostream {
 public:
  static std::unique_ptr<OutputStream> ForStdout();

  // The file gets its name at Finish().
  static std::unique_ptr<OutputStream> ForFile(OutputFile file);

  ~OutputStream() override;

  // Delivers what is buffered and returns the first error of any write. A file
  // that nothing was written to appears only with `keep_empty`. Call once,
  // last.
  absl::Status Finish(bool keep_empty);

 private:
  class Buffer;
  explicit OutputStream(std::unique_ptr<Buffer> buffer);

  std::unique_ptr<Buffer> buffer_;
};

}  // namespace firstframe::cli

#endif  // LIB_CLI_OUTPUT_STREAM_H_
