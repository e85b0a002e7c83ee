// Records made of other tools' dumps, on their way to the reader.

#ifndef LIB_ACTIVATION_FOREIGN_EMITTER_H_
#define LIB_ACTIVATION_FOREIGN_EMITTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/activation/foreign_trace.h"
#include "lib/base/regex.h"

namespace firstframe {

// Builds one record's line, keys in the order added.
class ForeignRecord {
 public:
  ForeignRecord(absl::string_view module, absl::string_view tensor,
                std::optional<int64_t> step);

  void Number(absl::string_view key, std::optional<double> value);
  void Shape(const std::vector<int64_t>& shape);
  void Dtype(absl::string_view dtype);
  // The precision of the numbers, for the reader: "stat_rel" or "stat_abs".
  void Precision(absl::string_view key, double value);
  // Of the bytes, by whatever algorithm the tool has.
  void Checksum(absl::string_view text);

  const std::string& module() const { return module_; }
  bool empty() const { return values_ == 0; }  // says nothing of the tensor
  std::string Line() const { return line_ + "}"; }

 private:
  std::string module_, line_;
  int values_ = 0;
};

// Takes the records of one dump.
class ForeignEmitter {
 public:
  ForeignEmitter(std::unique_ptr<const RE2> layers,
                 absl::FunctionRef<absl::Status(const std::string&)> emit)
      : layers_(std::move(layers)), emit_(emit) {}

  absl::Status Emit(const ForeignRecord& record);

  ForeignCounts counts;

 private:
  const std::unique_ptr<const RE2> layers_;
  absl::FunctionRef<absl::Status(const std::string&)> emit_;
};

// A JSON string's text, or the text of another value as it is.
std::string JsonText(absl::string_view value);
// The numbers of a JSON array; what is none counts as 0.
std::vector<int64_t> ReadJsonShape(absl::string_view value);
double NumelOf(const std::vector<int64_t>& shape);

// One dialect each; see foreign_trace.h.
absl::Status ReadMsprobe(absl::string_view text, ForeignEmitter* out);
absl::Status ReadSglang(absl::string_view text, bool target_side,
                        ForeignEmitter* out);
absl::Status ReadTeLog(absl::string_view text, ForeignEmitter* out);
absl::Status ReadTorchtitan(absl::string_view text, ForeignEmitter* out);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_FOREIGN_EMITTER_H_
