#include "lib/load/choose_mode.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace firstframe {
namespace {

constexpr double kWorthMoving = 1.05;

std::string Describe(LoadMode mode, const BindingLimit& limit) {
  const std::string name(GetLoadModeInfo(mode).name);
  if (!limit.gb_per_s) return absl::StrCat(name, " by no limit measured");
  return absl::StrFormat("%s %.1f GB/s by %s", name, *limit.gb_per_s,
                         limit.name);
}

}  // namespace

ModeChoice ChooseLoadMode(const Roofline& roofline, int ranks, bool to_device,
                          double cached_fraction) {
  // From the least that is moved between ranks to the most.
  std::vector<LoadMode> candidates;
  if (ranks == 1) {
    candidates = {to_device ? LoadMode::kIndependent : LoadMode::kHost};
  } else {
    candidates = {LoadMode::kIndependent, LoadMode::kBroadcastBucketed,
                  LoadMode::kShardAllgather};
  }
  ModeChoice choice;
  double best = 0;
  std::vector<std::string> others;
  std::string chosen;
  for (const LoadMode mode : candidates) {
    const BindingLimit limit =
        LimitFor(mode, roofline, ranks, to_device, cached_fraction);
    const double rate = limit.gb_per_s.value_or(0);
    const std::string text = Describe(mode, limit);
    if (chosen.empty() || rate > best * kWorthMoving) {
      if (!chosen.empty()) others.push_back(chosen);
      choice.mode = mode;
      best = rate;
      chosen = text;
    } else {
      others.push_back(text);
    }
  }
  choice.why = chosen;
  for (const std::string& other : others) {
    absl::StrAppend(&choice.why, "; ", other);
  }
  return choice;
}

}  // namespace firstframe
