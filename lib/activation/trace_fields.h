// The values of a trace record, read in place.
//
// Every function takes a range [p, end) and returns the position behind what it
// read, or nullptr when that is not there. Thread-safe.

#ifndef LIB_ACTIVATION_TRACE_FIELDS_H_
#define LIB_ACTIVATION_TRACE_FIELDS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/number.h"
#include "lib/activation/trace_table.h"
#include "lib/tensor/shape.h"

namespace firstframe::trace_fields {

inline bool Continues(const char* p, const char* end, absl::string_view text) {
  return static_cast<size_t>(end - p) >= text.size() &&
         std::memcmp(p, text.data(), text.size()) == 0;
}

// Reads what is no number into `value`: null, an error string, anything else.
const char* ReadOddValue(const char* p, const char* end, TraceValue value,
                         TraceRow* row);

// Reads a number, a token, null or an error string into `value`.
inline const char* ReadValue(const char* p, const char* end, TraceValue value,
                             TraceRow* row) {
  ParsedNumber number;
  const char* const behind =
      p < end && *p != '"' ? ParseNumber(p, end, &number) : nullptr;
  if (behind == nullptr) return ReadOddValue(p, end, value, row);
  row->values[value] = number.value;
  if (!std::isfinite(number.value)) row->flags |= TraceRow::kHasOdd;
  if (!number.is_float) row->flags |= TraceRow::kIsWide;
  return behind;
}

// Steps are integers or null; "3" and 3.0 are taken too. `*step` stays as it is
// for null and for what is no step.
const char* ReadStep(const char* p, const char* end, int32_t* step);

// Reads "[1, 64, 3]", also inside quotes ("torch.Size([1, 64])").
bool ParseShape(absl::string_view text, Shape* shape);

inline absl::string_view Unquoted(absl::string_view text) {
  if (text.size() >= 2 && text.front() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

}  // namespace firstframe::trace_fields

#endif  // LIB_ACTIVATION_TRACE_FIELDS_H_
