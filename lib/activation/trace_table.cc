#include "lib/activation/trace_table.h"

#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/activation/json_scan.h"

namespace firstframe {
namespace {

// Kinds that a float cannot tell apart live in the payload of a quiet NaN.
constexpr uint32_t kOddBits = 0x7FC0A000u;

}  // namespace

ValueKind TraceRow::OddKind(float number) {
  if (std::isinf(number)) {
    return number > 0 ? ValueKind::kPositiveInfinity
                      : ValueKind::kNegativeInfinity;
  }
  uint32_t bits;
  std::memcpy(&bits, &number, 4);
  return (bits & 0xFFFFFF00u) == kOddBits ? static_cast<ValueKind>(bits & 0xFF)
                                          : ValueKind::kNan;
}

void TraceRow::SetOdd(TraceValue value, ValueKind kind) {
  const uint32_t bits = kOddBits | static_cast<uint32_t>(kind);
  std::memcpy(&values[value], &bits, 4);
  if (kind != ValueKind::kMissing) flags |= kHasOdd;
}

void TraceRow::SetUnread(uint32_t line) {
  flags = kUnread;
  // Nobody looks at the numbers of an unread row: Kind() says that it has none.
  std::memcpy(&values[kSum], &line, 4);
}

TraceNames::TraceNames() : shapes_(1), numels_(1, 0.0), dtypes_(1) {}

uint32_t TraceNames::InternKey(absl::string_view raw_module,
                               absl::string_view raw_tensor) {
  std::string joined = absl::StrCat(raw_module, "\n", raw_tensor);
  const auto [it, is_new] = key_ids_.try_emplace(
      std::move(joined), static_cast<uint32_t>(keys_.size()));
  if (is_new) {
    keys_.push_back({json_scan::DecodeString(raw_module),
                     json_scan::DecodeString(raw_tensor),
                     std::string(raw_module), std::string(raw_tensor)});
  }
  return it->second;
}

uint32_t TraceNames::InternShape(const Shape& shape) {
  const auto [it, is_new] =
      shape_ids_.try_emplace(shape, static_cast<uint32_t>(shapes_.size()));
  if (is_new) {
    double numel = 1;
    for (const int64_t size : shape) numel *= static_cast<double>(size);
    shapes_.push_back(shape);
    numels_.push_back(numel);
  }
  return it->second;
}

uint8_t TraceNames::InternDtype(absl::string_view name) {
  absl::ConsumePrefix(&name, "torch.");
  for (size_t i = 1; i < dtypes_.size(); ++i) {
    if (dtypes_[i] == name) return static_cast<uint8_t>(i);
  }
  // Past 254 names the file is not a trace; they then share the last number.
  if (dtypes_.size() >= 255) return 254;
  dtypes_.emplace_back(name);
  return static_cast<uint8_t>(dtypes_.size() - 1);
}

}  // namespace firstframe
