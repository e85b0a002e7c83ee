#include "lib/load/cache_state.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr double kColdFraction = 0.01;
constexpr double kWarmFraction = 0.999;

absl::Status Unproven(CacheMode mode, const Residency& residency) {
  if (!residency.fraction()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot prove that the files are ", CacheModeName(mode),
                     ": ", residency.unknown_reason));
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "the files are not %s: %.1f %% of their pages are in the page cache",
      std::string(CacheModeName(mode)), *residency.fraction() * 100));
}

}  // namespace

absl::StatusOr<CacheMode> ParseCacheMode(absl::string_view text) {
  for (const CacheMode mode :
       {CacheMode::kAsIs, CacheMode::kWarm, CacheMode::kCold}) {
    if (text == CacheModeName(mode)) return mode;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("found '", text, "', expected as_is, warm or cold"));
}

absl::string_view CacheModeName(CacheMode mode) {
  switch (mode) {
    case CacheMode::kAsIs:
      return "as_is";
    case CacheMode::kWarm:
      return "warm";
    case CacheMode::kCold:
      return "cold";
  }
  return "as_is";
}

absl::StatusOr<Residency> PrepareCache(const OpenedSources& sources,
                                       CacheMode mode) {
  for (const OpenedFile& file : sources.files) {
    if (mode == CacheMode::kCold) {
      if (file.file_system.kind == FileSystemKind::kNetwork) {
        return absl::FailedPreconditionError(absl::StrCat(
            file.buffered.path(), ": ", file.file_system.type,
            " has a server whose cache cannot be emptied from here"));
      }
      FF_RETURN_IF_ERROR(EvictFromPageCache(file.buffered));
    } else if (mode == CacheMode::kWarm &&
               ProbeResidency(file.buffered).fraction().value_or(0) < 1) {
      FF_RETURN_IF_ERROR(FillPageCache(file.buffered));
    }
  }
  const Residency residency = sources.ProbeAll();
  const std::optional<double> fraction = residency.fraction();
  if (mode == CacheMode::kCold && fraction.value_or(1) > kColdFraction) {
    return Unproven(mode, residency);
  }
  if (mode == CacheMode::kWarm && fraction.value_or(0) < kWarmFraction) {
    return Unproven(mode, residency);
  }
  return residency;
}

}  // namespace firstframe
