#include "lib/base/jsonl_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;  // stays in the L2 cache
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Nearly every line starts with '{', which settles it at once.
bool IsBlank(absl::string_view text) {
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\r') return false;
  }
  return true;
}

}  // namespace

struct JsonlReader::State {
  ~State() {
    if (owns_fd) ::close(fd);
  }

  size_t unread() const { return end - begin; }
  absl::Status Fill();
  JsonlLine TakeLine(size_t length);

  int fd = -1;  // -1: memory only
  bool owns_fd = false;
  std::string name;
  // Bytes [begin, end) of `buffer` are read and not yet returned; of those, the
  // first `scanned` hold no line end. kJsonlPadding bytes follow `end`.
  std::vector<char> buffer;
  size_t begin = 0;
  size_t end = 0;
  size_t scanned = 0;
  int64_t offset = 0;  // of buffer[begin] in the input
  int64_t lines = 0;   // line ends passed
  bool is_at_start = true;
};

// Reads once; nothing new at the end of the input. Keeps what is unread.
absl::Status JsonlReader::State::Fill() {
  if (fd < 0) return absl::OkStatus();
  if (begin > 0) {
    std::memmove(buffer.data(), buffer.data() + begin, unread());
    end -= begin;
    begin = 0;
  }
  const size_t needed = end + kReadBytes + kJsonlPadding;
  if (buffer.size() < needed) {
    buffer.resize(std::max(needed, buffer.size() * 2));
  }
  ssize_t count;
  do {
    count =
        ::read(fd, buffer.data() + end, buffer.size() - kJsonlPadding - end);
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
  }
  end += static_cast<size_t>(count);
  // Behind an unfinished line there are zeros, not what was there before.
  std::memset(buffer.data() + end, 0, kJsonlPadding);
  return absl::OkStatus();
}

JsonlLine JsonlReader::State::TakeLine(size_t length) {
  JsonlLine line;
  line.text = absl::string_view(buffer.data() + begin, length);
  line.number = lines + 1;
  line.offset = offset;
  if (is_at_start && absl::StartsWith(line.text, kByteOrderMark)) {
    line.text.remove_prefix(kByteOrderMark.size());
  }
  if (!line.text.empty() && line.text.back() == '\r') {
    line.text.remove_suffix(1);
  }
  return line;
}

JsonlReader::JsonlReader(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
JsonlReader::JsonlReader(JsonlReader&&) noexcept = default;
JsonlReader& JsonlReader::operator=(JsonlReader&&) noexcept = default;
JsonlReader::~JsonlReader() = default;

absl::StatusOr<JsonlReader> JsonlReader::Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  JsonlReader reader = ForDescriptor(fd, path);
  reader.state_->owns_fd = true;
  return reader;
}

JsonlReader JsonlReader::ForDescriptor(int fd, std::string name) {
  auto state = std::make_unique<State>();
  state->fd = fd;
  state->name = std::move(name);
  return JsonlReader(std::move(state));
}

JsonlReader JsonlReader::ForText(absl::string_view text, std::string name) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->buffer.assign(text.begin(), text.end());
  state->buffer.resize(text.size() + kJsonlPadding);
  state->end = text.size();
  return JsonlReader(std::move(state));
}

absl::StatusOr<std::optional<JsonlLine>> JsonlReader::Next() {
  State& s = *state_;
  while (true) {
    const char* const from = s.buffer.data() + s.begin + s.scanned;
    const void* const found =
        s.unread() > s.scanned ? std::memchr(from, '\n', s.unread() - s.scanned)
                               : nullptr;
    if (found != nullptr) {
      const size_t length = static_cast<size_t>(
          static_cast<const char*>(found) - (s.buffer.data() + s.begin));
      const JsonlLine line = s.TakeLine(length);
      s.begin += length + 1;
      s.offset += static_cast<int64_t>(length) + 1;
      s.scanned = 0;
      s.is_at_start = false;
      ++s.lines;
      if (!IsBlank(line.text)) return line;
      continue;
    }
    s.scanned = s.unread();
    if (s.scanned > kMaxLineBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(s.name, ":", s.lines + 1, ": the line is longer than ",
                       kMaxLineBytes, " bytes"));
    }
    if (absl::Status status = s.Fill(); !status.ok()) return status;
    if (s.unread() == s.scanned) return std::nullopt;
  }
}

std::optional<JsonlLine> JsonlReader::Rest() {
  const JsonlLine line = state_->TakeLine(state_->unread());
  if (IsBlank(line.text)) return std::nullopt;
  return line;
}

const std::string& JsonlReader::name() const { return state_->name; }

int64_t JsonlReader::bytes_read() const {
  return state_->offset + static_cast<int64_t>(state_->unread());
}

bool ReplacePythonTokens(absl::string_view line, std::string* out) {
  constexpr absl::string_view kTokens[] = {"-Infinity", "Infinity", "NaN"};
  out->clear();
  out->reserve(line.size() + kJsonlPadding);
  bool replaced = false;
  bool in_string = false;
  for (size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (in_string) {
      const size_t length = c == '\\' && i + 1 < line.size() ? 2 : 1;
      in_string = c != '"';
      out->append(line.data() + i, length);
      i += length;
      continue;
    }
    in_string = c == '"';
    const absl::string_view rest = line.substr(i);
    size_t matched = 0;
    for (const absl::string_view token : kTokens) {
      if (absl::StartsWith(rest, token)) matched = token.size();
    }
    if (matched > 0) {
      out->append("null");
      replaced = true;
      i += matched;
    } else {
      out->push_back(c);
      ++i;
    }
  }
  return replaced;
}

}  // namespace firstframe
