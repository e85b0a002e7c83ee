#include "lib/activation/trace_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr size_t kMaxUnpackedBytes = size_t{64} << 30;
constexpr absl::string_view kGzipMagic("\x1F\x8B", 2);
constexpr absl::string_view kZstdMagic("\x28\xB5\x2F\xFD", 4);

absl::Status TooLarge(const std::string& name) {
  return absl::ResourceExhaustedError(
      absl::StrCat(name, ": more than 64 GiB when decompressed"));
}

absl::StatusOr<std::string> Gunzip(absl::string_view packed,
                                   const std::string& name) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) {
    return absl::ResourceExhaustedError("zlib: no memory");
  }
  const auto end = absl::MakeCleanup([&] { inflateEnd(&stream); });
  std::string out;
  std::vector<char> buffer(kBufferBytes);
  const char* next = packed.data();
  size_t left = packed.size();
  int code = Z_OK;
  while (true) {
    const uInt piece = static_cast<uInt>(std::min<size_t>(left, 1 << 30));
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(next));
    stream.avail_in = piece;
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    code = inflate(&stream, Z_NO_FLUSH);
    next += piece - stream.avail_in;
    left -= piece - stream.avail_in;
    out.append(buffer.data(), buffer.size() - stream.avail_out);
    if (out.size() > kMaxUnpackedBytes) return TooLarge(name);
    if (code == Z_STREAM_END && left > 0) {  // members may follow each other
      if (inflateReset(&stream) != Z_OK) break;
      continue;
    }
    if (code != Z_OK || (left == 0 && stream.avail_out > 0)) break;
  }
  if (code != Z_STREAM_END) {
    return absl::DataLossError(
        absl::StrCat(name, ": gzip data ends early or is damaged after ",
                     out.size(), " bytes"));
  }
  return out;
}

absl::StatusOr<std::string> Unzstd(absl::string_view packed,
                                   const std::string& name) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(
      ZSTD_createDStream(), &ZSTD_freeDStream);
  std::string out;
  std::vector<char> buffer(kBufferBytes);
  ZSTD_inBuffer in = {packed.data(), packed.size(), 0};
  size_t result = 1;
  while (in.pos < in.size || result > 0) {
    ZSTD_outBuffer to = {buffer.data(), buffer.size(), 0};
    const size_t before = in.pos;
    result = ZSTD_decompressStream(stream.get(), &to, &in);
    out.append(buffer.data(), to.pos);
    if (out.size() > kMaxUnpackedBytes) return TooLarge(name);
    if (ZSTD_isError(result) || (in.pos == before && to.pos == 0)) {
      return absl::DataLossError(
          absl::StrCat(name, ": zstd data ends early or is damaged after ",
                       out.size(), " bytes"));
    }
  }
  return out;
}

absl::Status Errno(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot ", what, " ", path));
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path) {
  std::string text;
  std::vector<char> buffer(kBufferBytes);
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Errno("read", path);
    text.append(buffer.data(), got);
  }
}

bool IsStream(const std::string& path) {
  struct stat info = {};
  return path == "-" || (::stat(path.c_str(), &info) == 0 &&
                         !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

}  // namespace

TraceInput& TraceInput::operator=(TraceInput&& other) noexcept {
  Unmap();
  name_ = std::move(other.name_);
  mapping_ = std::exchange(other.mapping_, nullptr);
  size_ = std::exchange(other.size_, 0);
  owned_ = std::move(other.owned_);
  return *this;
}

TraceInput::~TraceInput() { Unmap(); }

void TraceInput::Unmap() {
  if (mapping_ != nullptr) ::munmap(mapping_, size_);
  mapping_ = nullptr;
}

absl::StatusOr<TraceInput> TraceInput::FromString(std::string text,
                                                  std::string name) {
  TraceInput input;
  if (absl::StartsWith(text, kGzipMagic)) {
    FF_ASSIGN_OR_RETURN(text, Gunzip(text, name));
  } else if (absl::StartsWith(text, kZstdMagic)) {
    FF_ASSIGN_OR_RETURN(text, Unzstd(text, name));
  }
  input.name_ = std::move(name);
  input.owned_ = std::move(text);
  return input;
}

absl::StatusOr<TraceInput> TraceInput::Open(const std::string& path) {
  const bool is_stdin = path == "-";
  const int fd = is_stdin ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Errno("open", path);
  const auto close = absl::MakeCleanup([&] {
    if (!is_stdin) ::close(fd);
  });
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return Errno("stat", path);
  if (S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return Errno("read", path);
  }
  if (S_ISREG(info.st_mode) && info.st_size > 0 && !is_stdin) {
    void* const mapping =
        ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping != MAP_FAILED) {
      ::madvise(mapping, info.st_size, MADV_SEQUENTIAL);
      TraceInput input;
      input.name_ = path;
      input.mapping_ = mapping;
      input.size_ = info.st_size;
      const absl::string_view text = input.text();
      if (!absl::StartsWith(text, kGzipMagic) &&
          !absl::StartsWith(text, kZstdMagic)) {
        return input;
      }
      return FromString(std::string(text), path);
    }
  }
  FF_ASSIGN_OR_RETURN(std::string text, ReadAll(fd, path));
  return FromString(std::move(text), is_stdin ? "standard input" : path);
}

absl::StatusOr<std::pair<TraceInput, TraceInput>> OpenTracePair(
    const std::string& left, const std::string& right) {
  absl::StatusOr<TraceInput> a = absl::UnknownError("not opened");
  absl::StatusOr<TraceInput> b = a.status();
  if (IsStream(left) && IsStream(right)) {
    std::thread other([&] { b = TraceInput::Open(right); });
    a = TraceInput::Open(left);
    other.join();
  } else {
    a = TraceInput::Open(left);
    if (a.ok()) b = TraceInput::Open(right);
  }
  FF_RETURN_IF_ERROR(a.status());
  FF_RETURN_IF_ERROR(b.status());
  return std::pair(*std::move(a), *std::move(b));
}

}  // namespace firstframe
