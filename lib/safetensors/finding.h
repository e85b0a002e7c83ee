// What is wrong, or odd, about a checkpoint: where, what was found, what was
// expected. One type for files, shards and indexes.

#ifndef LIB_SAFETENSORS_FINDING_H_
#define LIB_SAFETENSORS_FINDING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// How much a reader puts up with. docs/formats/safetensors.md has the table.
enum class Strictness {
  kStrict,   // what the format promises
  kLenient,  // also what the reference reader takes and nothing can misread
};

enum class Severity { kWarning, kError };

struct Finding {
  Severity severity = Severity::kError;
  std::string rule;         // a stable word for programs: "duplicate_name"
  std::string path;         // the file it is about
  std::string link_target;  // where it leads when it is a symbolic link
  std::optional<uint64_t> position;  // byte of that file; none for a whole file
  std::string tensor;                // its name, as it is in the file, or empty
  std::string found;
  std::string expected;

  bool operator==(const Finding&) const = default;
};

// The findings of one file that are kept; the rest is counted. A broken writer
// breaks every entry the same way, and a hundred show it.
inline constexpr size_t kMaxFindings = 100;

// Collects findings about one file, up to kMaxFindings of them.
class FindingSink {
 public:
  // Appends to `*findings` and counts the rest in `*dropped`; both must outlive
  // the sink.
  FindingSink(absl::string_view path, std::vector<Finding>* findings,
              size_t* dropped)
      : path_(path), findings_(findings), dropped_(dropped) {}

  // Whether further errors are only counted: spare the work of wording them.
  bool is_full() const { return findings_->size() >= kMaxFindings; }

  void Report(Severity severity, absl::string_view rule,
              std::optional<uint64_t> position, absl::string_view tensor,
              std::string found, absl::string_view expected);
  void Error(absl::string_view rule, std::optional<uint64_t> position,
             absl::string_view tensor, std::string found,
             absl::string_view expected) {
    Report(Severity::kError, rule, position, tensor, std::move(found),
           expected);
  }
  void Warning(absl::string_view rule, std::optional<uint64_t> position,
               absl::string_view tensor, std::string found,
               absl::string_view expected) {
    Report(Severity::kWarning, rule, position, tensor, std::move(found),
           expected);
  }

 private:
  const std::string path_;
  std::vector<Finding>* const findings_;
  size_t* const dropped_;
};

// Returns an error in strict mode and a warning in lenient mode.
inline Severity StrictError(Strictness strictness) {
  return strictness == Strictness::kStrict ? Severity::kError
                                           : Severity::kWarning;
}

// Returns "path: byte 12: tensor "x": found ..., expected ...", and
// "path -> target: ..." for a link.
std::string FindingMessage(const Finding& finding);

// Returns DataLoss with the first error's message and the number of further
// errors, or OK when there is none.
absl::Status FindingsStatus(const std::vector<Finding>& findings);

bool HasError(const std::vector<Finding>& findings);

// Returns `name` as a JSON string (so that NUL and line breaks are visible),
// cut after 200 bytes with its length added.
std::string QuoteName(absl::string_view name);

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_FINDING_H_
