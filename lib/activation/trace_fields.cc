#include "lib/activation/trace_fields.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace firstframe::trace_fields {
namespace {

// Dimensions past this are no tensor's; the rest of the list is kept out.
constexpr size_t kMaxRank = 32;

}  // namespace

const char* ReadOddValue(const char* p, const char* end, TraceValue value,
                         TraceRow* row) {
  if (p >= end) return nullptr;
  if (*p == '"') {
    row->SetOdd(value, ValueKind::kError);
    return json_scan::SkipString(p, end);
  }
  row->SetOdd(value, ValueKind::kNull);
  // null, but also true, or a list: nothing that compares.
  return json_scan::SkipValue(p, end);
}

const char* ReadStep(const char* p, const char* end, int32_t* step) {
  if (Continues(p, end, "null")) return p + 4;
  const char* const behind = json_scan::SkipValue(p, end);
  if (behind == nullptr) return nullptr;
  absl::string_view text(p, behind - p);
  if (absl::ConsumePrefix(&text, "\"")) absl::ConsumeSuffix(&text, "\"");
  double value = 0;
  if (absl::SimpleAtod(text, &value) && value > -2e9 && value < 2e9) {
    *step = static_cast<int32_t>(value);
  }
  return behind;
}

bool ParseShape(absl::string_view text, Shape* shape) {
  for (size_t i = 0; i < text.size();) {
    if (!absl::ascii_isdigit(text[i])) {
      ++i;
      continue;
    }
    size_t j = i;
    while (j < text.size() && absl::ascii_isdigit(text[j])) ++j;
    int64_t size = 0;
    if (!absl::SimpleAtoi(text.substr(i, j - i), &size)) return false;
    shape->push_back(size);
    if (shape->size() > kMaxRank) return false;
    i = j;
  }
  return true;
}

}  // namespace firstframe::trace_fields
