#include "lib/activation/confirm_jumps.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace firstframe {
namespace {

// An isolated jump, with nothing downstream to confirm it, must be this much
// larger to count.
constexpr double kIsolatedFactor = 2;
constexpr double kConfirmJump = 1.3;
constexpr int kConfirmCount = 2;

struct Behind {
  int high = 0;
  size_t looked = 0;
};

Behind LookBehind(const std::vector<RowVerdict>& rows, size_t i) {
  Behind behind;
  for (size_t j = i + 1; j < rows.size() && behind.looked < kConfirmRows; ++j) {
    behind.high += rows[j].jump() >= kConfirmJump || rows[j].Fires();
    ++behind.looked;
  }
  return behind;
}

}  // namespace

void ConfirmJumps(const DivergenceOptions& options, Divergence* divergence) {
  for (size_t i = 0; i < divergence->rows.size(); ++i) {
    RowVerdict& v = divergence->rows[i];
    if (!v.Fires()) continue;
    const Behind behind = LookBehind(divergence->rows, i);
    if (behind.high >= kConfirmCount) {
      v.flags |= RowVerdict::kConfirmed;
    } else if (behind.looked < kConfirmCount) {
      v.flags |= RowVerdict::kAtEnd;
    } else {
      v.flags |= RowVerdict::kIsolated;
      const bool is_jump = v.reason == FireReason::kCoherentJump ||
                           v.reason == FireReason::kEnergyJump;
      const double factor = options.channel(v.channel()).jump;
      if (is_jump && v.jump() < kIsolatedFactor * factor) {
        ++divergence->num_isolated;
        v.reason = FireReason::kNone;
        continue;
      }
    }
    ++divergence->num_fired;
    if (!divergence->first) divergence->first = i;
  }
}

void FoldParents(const Alignment& alignment, Divergence* divergence) {
  if (!divergence->first) return;
  absl::flat_hash_map<std::string, size_t> fired;  // by name, the last time
  absl::flat_hash_map<std::string, size_t> seen;   // every parent's last row
  const auto name_of = [&](uint32_t key) -> const std::string& {
    return alignment.entities[alignment.entity_a[key]].module;
  };
  size_t run = 0;
  for (size_t i = *divergence->first; i < divergence->rows.size(); ++i) {
    for (; run < alignment.runs.size() && alignment.run_pairs[run] <= i;
         ++run) {
      if (alignment.run_pairs[run] <= *divergence->first) continue;
      std::vector<bool> done(alignment.entity_a.size());
      for (const uint32_t key : alignment.runs[run].keys) {
        if (!done[key]) seen[name_of(key)] = i - 1;
        done[key] = true;
      }
    }
    const std::string& name =
        name_of(alignment.a.table.rows[alignment.pairs[i].a].key);
    RowVerdict& v = divergence->rows[i];
    const auto it = fired.find(name);
    const auto before = seen.find(name);
    if (v.Fires() && it != fired.end() &&
        (before == seen.end() || it->second > before->second)) {
      v.flags |= RowVerdict::kFoldedParent;
    }
    seen[name] = i;
    if (!v.Fires()) continue;
    for (size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0;
         dot = name.rfind('.', dot - 1)) {
      fired[name.substr(0, dot)] = i;
    }
  }
}

}  // namespace firstframe
