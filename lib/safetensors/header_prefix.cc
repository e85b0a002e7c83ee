// What the first bytes of a file say: the header's length, or another format.

#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/safetensors/header.h"

namespace firstframe {
namespace {

struct KnownStart {
  absl::string_view start;
  absl::string_view rule;
  absl::string_view what;
};

constexpr KnownStart kKnownStarts[] = {
    {"version https://git-lfs.github.com/spec/", "lfs_pointer",
     "a Git LFS pointer; run 'git lfs pull' in its repository"},
    {absl::string_view("PK\x03\x04", 4), "zip_file",
     "a zip archive, as torch.save writes"},
    {absl::string_view("PK\x05\x06", 4), "zip_file", "an empty zip archive"},
    {"GGUF", "other_format", "a GGUF file"},
    {"\x89HDF", "other_format", "an HDF5 file"},
    {"\x93NUMPY", "other_format", "a NumPy file"},
    {"\x1f\x8b", "other_format", "a gzip file"},
    {"(\xb5/\xfd", "other_format", "a zstd file"},
    {"<!DOCTYPE", "other_format", "an HTML page, perhaps of a failed download"},
    {"<html", "other_format", "an HTML page, perhaps of a failed download"},
    {"{", "other_format", "JSON text without the 8 bytes of its length"},
};

// Pickle protocols 2 to 5 begin with 0x80 and their number.
bool IsPickle(absl::string_view start) {
  return start.size() >= 2 && start[0] == '\x80' && start[1] >= 2 &&
         start[1] <= 5;
}

std::optional<Finding> RecogniseOther(absl::string_view start) {
  Finding finding;
  finding.position = 0;
  finding.expected = "a safetensors file";
  for (const KnownStart& known : kKnownStarts) {
    if (!absl::StartsWith(start, known.start)) continue;
    finding.rule = std::string(known.rule);
    finding.found = std::string(known.what);
    return finding;
  }
  if (IsPickle(start)) {
    finding.rule = "pickle_file";
    finding.found = "a Python pickle, as torch.save writes";
    return finding;
  }
  return std::nullopt;
}

Finding PrefixFinding(absl::string_view path, absl::string_view rule,
                      std::string found, std::string expected) {
  Finding finding;
  finding.rule = std::string(rule);
  finding.path = std::string(path);
  finding.position = 0;
  finding.found = std::move(found);
  finding.expected = std::move(expected);
  return finding;
}

}  // namespace

std::variant<uint64_t, Finding> CheckHeaderPrefix(absl::string_view path,
                                                  absl::string_view start,
                                                  uint64_t file_size) {
  if (file_size < kHeaderPrefixSize || start.size() < kHeaderPrefixSize) {
    return PrefixFinding(path, "file_too_small",
                         file_size == 0
                             ? "an empty file"
                             : absl::StrCat("a file of ", file_size, " bytes"),
                         "8 bytes of header length at least");
  }
  uint64_t length;
  std::memcpy(&length, start.data(), sizeof(length));
  if (length > 0 && length <= kMaxHeaderSize &&
      length <= file_size - kHeaderPrefixSize) {
    return length;
  }
  if (std::optional<Finding> other = RecogniseOther(start)) {
    other->path = std::string(path);
    return *std::move(other);
  }
  if (length == 0) {
    return PrefixFinding(path, "empty_header", "a header length of 0",
                         "a header; a file of zeros is a download that did "
                         "not finish");
  }
  if (length > kMaxHeaderSize) {
    return PrefixFinding(path, "header_over_limit",
                         absl::StrCat("a header length of ", length, " bytes"),
                         absl::StrCat("at most ", kMaxHeaderSize));
  }
  return PrefixFinding(
      path, "header_past_end",
      absl::StrCat("a header of ", length, " bytes after byte 8 in a file of ",
                   file_size, " bytes"),
      absl::StrCat("a file of ", length + kHeaderPrefixSize,
                   " bytes at least; it is cut off"));
}

}  // namespace firstframe
