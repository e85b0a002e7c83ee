#include "lib/cli/output_stream.h"

#include <errno.h>
#include <unistd.h>

#include <optional>
#include <streambuf>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/base/status_macros.h"

namespace firstframe::cli {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

absl::Status WriteStdout(absl::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::ErrnoToStatus(errno, "cannot write standard output");
    }
    data.remove_prefix(n);
  }
  return absl::OkStatus();
}

}  // namespace

class OutputStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::optional<OutputFile> file)
      : file_(std::move(file)), bytes_(kBufferBytes) {
    setp(bytes_.data(), bytes_.data() + bytes_.size());
  }

  absl::Status Finish(bool keep_empty) {
    Drain();
    FF_RETURN_IF_ERROR(status_);
    if (file_ && (wrote_ || keep_empty)) return file_->Commit();
    return absl::OkStatus();
  }

 protected:
  int sync() override { return Drain() ? 0 : -1; }

  int_type overflow(int_type c) override {
    if (!Drain()) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }

  std::streamsize xsputn(const char* data, std::streamsize size) override {
    if (size <= epptr() - pptr()) return std::streambuf::xsputn(data, size);
    if (!Drain()) return 0;
    if (static_cast<size_t>(size) < kBufferBytes) {
      return std::streambuf::xsputn(data, size);
    }
    return Deliver(absl::string_view(data, size)) ? size : 0;
  }

 private:
  bool Drain() {
    const bool ok = Deliver(absl::string_view(pbase(), pptr() - pbase()));
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return ok;
  }

  bool Deliver(absl::string_view data) {
    if (!status_.ok() || data.empty()) return status_.ok();
    status_ = file_ ? file_->Write(data) : WriteStdout(data);
    wrote_ = true;
    return status_.ok();
  }

  std::optional<OutputFile> file_;
  std::vector<char> bytes_;
  absl::Status status_;
  bool wrote_ = false;
};

OutputStream::OutputStream(std::unique_ptr<Buffer> buffer)
    : std::ostream(buffer.get()), buffer_(std::move(buffer)) {}

OutputStream::~OutputStream() = default;

std::unique_ptr<OutputStream> OutputStream::ForStdout() {
  return std::unique_ptr<OutputStream>(
      new OutputStream(std::make_unique<Buffer>(std::nullopt)));
}

std::unique_ptr<OutputStream> OutputStream::ForFile(OutputFile file) {
  return std::unique_ptr<OutputStream>(
      new OutputStream(std::make_unique<Buffer>(std::move(file))));
}

absl::Status OutputStream::Finish(bool keep_empty) {
  return buffer_->Finish(keep_empty);
}

}  // namespace firstframe::cli
