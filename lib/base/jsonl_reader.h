// Reads JSONL as it streams: lines of a file, a pipe or a file that still
// grows, without copying them one by one.
//
//   FF_ASSIGN_OR_RETURN(JsonlReader reader, JsonlReader::Open(path));
//   while (true) {
//     FF_ASSIGN_OR_RETURN(const std::optional<JsonlLine> line, reader.Next());
//     if (!line) break;
//     ...
//   }
//   if (const auto rest = reader.Rest()) ...  // a last line without line end
//
// Lines end in LF or CR LF; a byte order mark before the first is skipped, and
// so are lines of white space. What a line holds is the caller's to parse:
// Python's NaN and Infinity are not JSON, see ReplacePythonTokens.

#ifndef LIB_BASE_JSONL_READER_H_
#define LIB_BASE_JSONL_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Readable bytes behind every line's text, so that simdjson parses it in place.
// The first of them is the line's own end, or 0.
inline constexpr size_t kJsonlPadding = 64;

struct JsonlLine {
  // Without its line end; valid until the next call of Next() or Rest().
  absl::string_view text;
  int64_t number = 0;  // from 1; lines that were skipped count
  int64_t offset = 0;  // of its first byte in the input
};

// Movable, thread-compatible.
class JsonlReader {
 public:
  // A longer line is an error: nothing that this project reads comes near it.
  static constexpr size_t kMaxLineBytes = size_t{256} << 20;

  // Opens `path`; codes from errno, with the path.
  static absl::StatusOr<JsonlReader> Open(const std::string& path);
  // Reads `fd` and does not close it; `name` goes into errors.
  static JsonlReader ForDescriptor(int fd, std::string name);
  // Reads from memory; `text` is copied.
  static JsonlReader ForText(absl::string_view text, std::string name);

  JsonlReader(JsonlReader&&) noexcept;
  JsonlReader& operator=(JsonlReader&&) noexcept;
  ~JsonlReader();

  // Returns the next whole line, or nothing when the input has no more for now.
  // Later calls try again: that is how a growing file is followed. Errors: from
  // reading, and ResourceExhausted for a line over kMaxLineBytes; both name the
  // input and the line.
  absl::StatusOr<std::optional<JsonlLine>> Next();

  // After Next() returned nothing: the bytes behind the last line end, if there
  // are any but white space. A writer may be in the middle of them. They stay
  // in place and Next() completes them when more arrives.
  std::optional<JsonlLine> Rest();

  const std::string& name() const;
  // Bytes read so far.
  int64_t bytes_read() const;

 private:
  struct State;
  explicit JsonlReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Copies `line` into `*out` with the bare tokens that Python's json.dumps
// writes for what JSON has no number for (NaN, Infinity, -Infinity) replaced by
// null, strings left alone. Returns whether there were any.
bool ReplacePythonTokens(absl::string_view line, std::string* out);

}  // namespace firstframe

#endif  // LIB_BASE_JSONL_READER_H_
