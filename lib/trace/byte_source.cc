#include "lib/trace/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

absl::Status ErrnoError(const std::string& path) {
  const int code = errno;
  const std::string message = absl::StrCat(path, ": ", std::strerror(code));
  if (code == ENOENT) return absl::NotFoundError(message);
  if (code == EACCES) return absl::PermissionDeniedError(message);
  return absl::UnknownError(message);
}

class FileSource : public ByteSource {
 public:
  FileSource(std::string path, int fd, std::string head)
      : path_(std::move(path)), fd_(fd), head_(std::move(head)) {}
  ~FileSource() override {
    if (fd_ > 0) ::close(fd_);
  }

  absl::StatusOr<size_t> Read(char* buffer, size_t capacity) override {
    if (head_at_ < head_.size()) {
      const size_t n = std::min(capacity, head_.size() - head_at_);
      std::memcpy(buffer, head_.data() + head_at_, n);
      head_at_ += n;
      return n;
    }
    for (;;) {
      const ssize_t n = ::read(fd_, buffer, capacity);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR) return ErrnoError(path_);
    }
  }

 private:
  const std::string path_;
  const int fd_;
  const std::string head_;  // read to find out the format
  size_t head_at_ = 0;
};

class GzipSource : public ByteSource {
 public:
  GzipSource(std::string path, std::unique_ptr<ByteSource> packed)
      : path_(std::move(path)), packed_(std::move(packed)), input_(1 << 16) {
    // 16: gzip wrapper, with its check sum.
    ready_ = inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK;
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  absl::StatusOr<size_t> Read(char* buffer, size_t capacity) override {
    if (!ready_) return absl::ResourceExhaustedError("zlib: out of memory");
    if (!pending_.ok()) return std::exchange(pending_, absl::OkStatus());
    if (done_) return size_t{0};
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(capacity);
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0) {
        FF_ASSIGN_OR_RETURN(const size_t n,
                            packed_->Read(input_.data(), input_.size()));
        if (n == 0) {
          done_ = true;
          truncated_ = in_member_;
          break;
        }
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(n);
      }
      if (!in_member_ && members_ > 0) {
        // Between members: zero padding (tar, some object stores) may follow.
        while (stream_.avail_in > 0 && *stream_.next_in == 0) {
          ++stream_.next_in;
          --stream_.avail_in;
        }
        if (stream_.avail_in == 0) continue;
        inflateReset(&stream_);
      }
      in_member_ = true;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        in_member_ = false;
        ++members_;
        continue;
      }
      if (code != Z_OK && code != Z_BUF_ERROR) {
        done_ = true;
        truncated_ = true;
        pending_ = absl::DataLossError(absl::StrCat(
            path_, ": gzip stream is damaged after ", stream_.total_out,
            " unpacked bytes: ", stream_.msg != nullptr ? stream_.msg : "?"));
        break;
      }
    }
    const size_t got = capacity - stream_.avail_out;
    if (got == 0 && !pending_.ok()) {
      return std::exchange(pending_, absl::OkStatus());
    }
    return got;
  }

 private:
  const std::string path_;
  std::unique_ptr<ByteSource> packed_;
  std::vector<char> input_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool in_member_ = false;
  bool done_ = false;
  int members_ = 0;
  absl::Status pending_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(
    const std::string& path) {
  int fd = 0;
  if (path != "-") {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoError(path);
    struct stat info;
    if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
      ::close(fd);
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": is a folder, expected a file"));
    }
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  std::string head(2, '\0');
  size_t got = 0;
  while (got < head.size()) {
    const ssize_t n = ::read(fd, head.data() + got, head.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      absl::Status status = ErrnoError(path);
      if (fd > 0) ::close(fd);
      return status;
    }
    if (n == 0) break;
    got += n;
  }
  head.resize(got);
  const bool is_gzip = head == "\x1f\x8b";
  std::unique_ptr<ByteSource> source =
      std::make_unique<FileSource>(path, fd, std::move(head));
  if (is_gzip) source = std::make_unique<GzipSource>(path, std::move(source));
  return source;
}

}  // namespace firstframe
