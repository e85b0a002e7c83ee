#include "lib/flops/device_peaks.h"

#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "lib/base/check.h"
#include "lib/base/edit_distance.h"
#include "lib/base/status_macros.h"
#include "lib/flops/device_peaks_data.h"

namespace firstframe {
namespace {

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) {
      text_ = absl::StrCat("device peaks:", line + 1, ":", column + 1, ": ",
                           message);
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// "80GB", "141GB": which of several memories a board carries.
bool IsMemorySize(absl::string_view word) {
  absl::string_view digits = word;
  if (absl::EndsWithIgnoreCase(digits, "GiB")) {
    digits.remove_suffix(3);
  } else if (absl::EndsWithIgnoreCase(digits, "GB")) {
    digits.remove_suffix(2);
  } else {
    return false;
  }
  if (digits.empty()) return false;
  for (const char c : digits) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return true;
}

// Drops the vendor, memory sizes and case; '-' separates words like a space.
std::string Normalized(absl::string_view name) {
  std::vector<std::string> kept;
  for (const absl::string_view word :
       absl::StrSplit(name, absl::ByAnyChar(" -_"), absl::SkipEmpty())) {
    if (IsMemorySize(word)) continue;
    const bool is_vendor = absl::EqualsIgnoreCase(word, "nvidia") ||
                           absl::EqualsIgnoreCase(word, "geforce");
    if (is_vendor) continue;
    kept.push_back(absl::AsciiStrToLower(word));
  }
  return absl::StrJoin(kept, " ");
}

absl::Status ValidateEntry(const DevicePeak& device) {
  if (device.board().empty() || device.name().empty() ||
      device.source().empty() || device.date().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("device peaks: entry '", device.board(),
                     "' lacks a board, name, source or date"));
  }
  for (const double rate :
       {device.fp32_tflops(), device.tf32_tflops(), device.bf16_tflops(),
        device.fp8_tflops(), device.memory_gb_per_s()}) {
    if (!(rate >= 0 && rate < 1e9)) {
      return absl::InvalidArgumentError(
          absl::StrCat("device peaks: ", device.board(), ": rate ", rate,
                       " is not in 0 to 1e9"));
    }
  }
  return absl::OkStatus();
}

// Why a name that is close to a known one still has no entry.
std::string UnknownReason(absl::string_view normalized,
                          const std::vector<std::string>& known) {
  const std::vector<std::string> words = absl::StrSplit(normalized, ' ');
  for (const std::string& word : words) {
    if (word == "mig") return "a MIG slice has a share of its board's peak";
    if (word == "laptop") return "laptop boards have lower clocks";
    if (word == "max") return "Max-Q boards have lower clocks";
  }
  const std::optional<std::string> nearest =
      NearestName(std::string(normalized), known);
  if (nearest)
    return absl::StrCat("the nearest known name is '", *nearest, "'");
  return "it is not in the table";
}

}  // namespace

absl::string_view MathTypeName(MathType type) {
  switch (type) {
    case MathType::kFp32:
      return "fp32";
    case MathType::kTf32:
      return "tf32";
    case MathType::kBf16:
      return "bf16";
    case MathType::kFp16:
      return "fp16";
    case MathType::kFp8:
      return "fp8";
  }
  return "unknown";
}

absl::StatusOr<MathType> ParseMathType(absl::string_view name) {
  for (const MathType type : {MathType::kFp32, MathType::kTf32, MathType::kBf16,
                              MathType::kFp16, MathType::kFp8}) {
    if (name == MathTypeName(type)) return type;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "arithmetic type '", name, "', expected fp32, tf32, bf16, fp16 or fp8"));
}

double MathTypeBytes(MathType type) {
  switch (type) {
    case MathType::kFp32:
    case MathType::kTf32:
      return 4;
    case MathType::kBf16:
    case MathType::kFp16:
      return 2;
    case MathType::kFp8:
      return 1;
  }
  return 4;
}

const DevicePeaks& BuiltinDevicePeaks() {
  static const DevicePeaks* const kPeaks = [] {
    absl::StatusOr<DevicePeaks> peaks =
        ParseDevicePeaks(std::string(kDevicePeaksTextproto));
    FF_CHECK(peaks.ok());
    return new DevicePeaks(*std::move(peaks));
  }();
  return *kPeaks;
}

absl::StatusOr<DevicePeaks> ParseDevicePeaks(const std::string& textproto) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  DevicePeaks peaks;
  if (!parser.ParseFromString(textproto, &peaks)) {
    return absl::InvalidArgumentError(error.text());
  }
  absl::flat_hash_set<std::string> seen;
  for (const DevicePeak& device : peaks.device()) {
    FF_RETURN_IF_ERROR(ValidateEntry(device));
    for (const std::string& name : device.name()) {
      if (!seen.insert(Normalized(name)).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            "device peaks: '", name, "' names two entries, the second is ",
            device.board()));
      }
    }
  }
  return peaks;
}

absl::StatusOr<DevicePeak> FindDevicePeak(const DevicePeaks& peaks,
                                          absl::string_view device_name) {
  const std::string wanted = Normalized(device_name);
  std::vector<std::string> known;
  for (const DevicePeak& device : peaks.device()) {
    for (const std::string& name : device.name()) {
      const std::string normalized = Normalized(name);
      if (normalized == wanted) return device;
      known.push_back(normalized);
    }
  }
  return absl::NotFoundError(absl::StrCat("no peak for device '", device_name,
                                          "': ", UnknownReason(wanted, known)));
}

absl::StatusOr<double> PeakTflops(const DevicePeak& peak, MathType type) {
  double rate = 0;
  switch (type) {
    case MathType::kFp32:
      rate = peak.fp32_tflops();
      break;
    case MathType::kTf32:
      rate = peak.tf32_tflops();
      break;
    case MathType::kBf16:
    case MathType::kFp16:
      rate = peak.bf16_tflops();
      break;
    case MathType::kFp8:
      rate = peak.fp8_tflops();
      break;
  }
  if (rate > 0) return rate;
  return absl::NotFoundError(absl::StrCat("no ", MathTypeName(type),
                                          " peak is known for ", peak.board()));
}

}  // namespace firstframe
