#include "lib/activation/trace_record.h"

#include <cmath>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/number.h"

namespace firstframe {
namespace {

absl::string_view Unquoted(absl::string_view text) {
  return text.size() >= 2 && text.front() == '"'
             ? text.substr(1, text.size() - 2)
             : text;
}

TraceRecord::Value ReadValue(absl::string_view text) {
  TraceRecord::Value value;
  if (text.front() == '"') {
    value.kind = ValueKind::kError;
    value.error = json_scan::DecodeString(Unquoted(text));
    return value;
  }
  ParsedNumber number;
  if (ParseNumber(text.data(), text.data() + text.size(), &number) == nullptr) {
    value.kind = ValueKind::kNull;
    return value;
  }
  value.number = ReadDouble(text);
  if (std::isnan(value.number)) {
    value.kind = ValueKind::kNan;
  } else if (std::abs(value.number) > 3.5e38 && std::isinf(number.value) &&
             std::abs(value.number) >= 1.7e308) {
    value.kind = value.number > 0 ? ValueKind::kPositiveInfinity
                                  : ValueKind::kNegativeInfinity;
  } else {
    value.kind = ValueKind::kNumber;
  }
  return value;
}

std::optional<double> ReadCount(absl::string_view text) {
  double value = 0;
  if (text.front() == '"' || !absl::SimpleAtod(text, &value)) {
    return std::nullopt;
  }
  return value;
}

// Hashes are hex strings; integers up to 2^64 are taken too.
std::optional<uint64_t> ReadHash(absl::string_view text) {
  uint64_t value = 0;
  if (text.front() == '"') {
    if (absl::SimpleHexAtoi(Unquoted(text), &value)) return value;
    return std::nullopt;
  }
  if (absl::SimpleAtoi(text, &value)) return value;
  return std::nullopt;
}

std::vector<float> ReadFloats(absl::string_view text) {
  std::string bytes;
  if (text.front() != '"' || !absl::Base64Unescape(Unquoted(text), &bytes) ||
      bytes.size() % 4 != 0) {
    return {};
  }
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Reads "[[120, 5], [121, 9]]".
std::vector<std::pair<int, int64_t>> ReadExponents(absl::string_view text) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < text.size();) {
    size_t j = i;
    while (j < text.size() && text[j] >= '0' && text[j] <= '9') ++j;
    int64_t value = 0;
    if (j > i && absl::SimpleAtoi(text.substr(i, j - i), &value)) {
      numbers.push_back(value);
    }
    i = j + 1;
  }
  std::vector<std::pair<int, int64_t>> pairs;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    if (numbers[i] < kNumExponents) {
      pairs.emplace_back(static_cast<int>(numbers[i]), numbers[i + 1]);
    }
  }
  return pairs;
}

void ReadExtra(absl::string_view key, absl::string_view text,
               TraceRecord* record) {
  if (key == "numel") record->numel = ReadCount(text);
  if (key == "rms") record->rms = ReadCount(text);
  if (key == "nan") record->nan = ReadCount(text);
  if (key == "inf_pos") record->inf_pos = ReadCount(text);
  if (key == "inf_neg") record->inf_neg = ReadCount(text);
  if (key == "zero") record->zero = ReadCount(text);
  if (key == "stat_rel") record->stat_rel = ReadCount(text);
  if (key == "stat_abs") record->stat_abs = ReadCount(text);
  if (key == "h_set") record->h_set = ReadHash(text);
  if (key == "h_pos") record->h_pos = ReadHash(text);
  if (key == "exp_hist") record->exponents = ReadExponents(text);
  if (key == "samp") record->samples = ReadFloats(text);
  if (key == "io" && text.front() == '"') {
    record->io = json_scan::DecodeString(Unquoted(text));
  }
  if (key == "checksum" && text.front() == '"') {
    record->checksum = json_scan::DecodeString(Unquoted(text));
  }
  if (key == "sk") {
    const std::vector<float> values = ReadFloats(text);
    if (values.size() == kSketchSize) {
      record->sketch.emplace();
      std::memcpy(record->sketch->data(), values.data(), 4 * kSketchSize);
    }
  }
}

}  // namespace

TraceRecord ReadRecord(absl::string_view text) {
  TraceRecord record;
  const char* const end = text.data() + text.size();
  const char* p = json_scan::SkipSpace(text.data() + 1, end);
  while (p < end && *p == '"') {
    const char* const key_end = json_scan::SkipString(p, end);
    if (key_end == nullptr) break;
    const absl::string_view key = Unquoted(absl::string_view(p, key_end - p));
    p = json_scan::SkipSpace(key_end, end);
    if (p >= end) break;
    p = json_scan::SkipSpace(p + 1, end);  // the colon
    const char* const behind = json_scan::SkipValue(p, end);
    if (behind == nullptr) break;
    const absl::string_view value(p, behind - p);
    bool is_value = false;
    for (int i = 0; i < kNumTraceValues; ++i) {
      if (key != kTraceValueNames[i]) continue;
      record.values[i] = ReadValue(value);
      is_value = true;
    }
    if (!is_value) ReadExtra(key, value, &record);
    p = json_scan::SkipSpace(behind, end);
    if (p >= end || *p != ',') break;
    p = json_scan::SkipSpace(p + 1, end);
  }
  return record;
}

}  // namespace firstframe
