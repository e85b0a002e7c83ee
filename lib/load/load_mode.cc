#include "lib/load/load_mode.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"
#include "lib/base/edit_distance.h"

namespace firstframe {

const std::vector<LoadModeInfo>& AllLoadModes() {
  static const auto* const kModes = new std::vector<LoadModeInfo>{
      {LoadMode::kToCpu, "to_cpu",
       "FastVideo: file mapping, tensor by tensor, every byte touched", true,
       false, false},
      {LoadMode::kToGpu, "to_gpu",
       "FastVideo: rank 0 reads, one broadcast per tensor", true, true, true},
      {LoadMode::kIndependentPerTensor, "independent_per_tensor",
       "FastVideo: every rank reads every tensor", true, false, false},
      {LoadMode::kBroadcastSync, "broadcast_sync",
       "FastVideo: one broadcast per tensor, each waited for", true, false,
       true},
      {LoadMode::kBroadcastAsync, "broadcast_async",
       "FastVideo: one broadcast per tensor, waited for at the end", true,
       false, true},
      {LoadMode::kHost, "host", "parallel reads into host memory", false, false,
       false},
      {LoadMode::kIndependent, "independent",
       "every rank loads everything through its pinned ring", false, false,
       false},
      {LoadMode::kRegistered, "registered",
       "the file mapping is pinned in place and copied from", false, true,
       false},
      {LoadMode::kCufile, "cufile",
       "cuFile reads into the device; says when it is not direct", false, true,
       false},
      {LoadMode::kBroadcastBucketed, "broadcast_bucketed",
       "rank 0 loads; large broadcasts overlap its copies", false, false, true},
      {LoadMode::kShardAllgather, "shard_allgather",
       "every rank loads 1/N; gathers overlap the copies", false, false, true},
      {LoadMode::kAuto, "auto",
       "the one of these that limits measured first favour; says why", false,
       false, false},
  };
  return *kModes;
}

const LoadModeInfo& GetLoadModeInfo(LoadMode mode) {
  for (const LoadModeInfo& info : AllLoadModes()) {
    if (info.mode == mode) return info;
  }
  FF_CHECK(false);
  return AllLoadModes()[0];
}

absl::StatusOr<std::vector<LoadMode>> ParseLoadModes(absl::string_view text) {
  std::vector<LoadMode> modes;
  std::vector<std::string> names;
  for (const LoadModeInfo& info : AllLoadModes()) {
    names.emplace_back(info.name);
  }
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    word = absl::StripAsciiWhitespace(word);
    bool found = false;
    for (const LoadModeInfo& info : AllLoadModes()) {
      if (info.name != word) continue;
      modes.push_back(info.mode);
      found = true;
    }
    if (found) continue;
    const auto nearest = NearestName(word, names);
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown mode '", word, "'",
        nearest ? absl::StrCat("; did you mean '", *nearest, "'?") : ""));
  }
  return modes;
}

std::vector<LoadMode> DefaultLoadModes(int ranks, bool has_device) {
  std::vector<LoadMode> modes = {LoadMode::kToCpu};
  if (has_device) modes.push_back(LoadMode::kToGpu);
  modes.push_back(LoadMode::kHost);
  if (ranks > 1) {
    modes.push_back(LoadMode::kIndependentPerTensor);
    if (!has_device) modes.push_back(LoadMode::kBroadcastSync);
    modes.push_back(LoadMode::kBroadcastAsync);
  }
  if (has_device || ranks > 1) modes.push_back(LoadMode::kIndependent);
  if (ranks > 1) {
    modes.push_back(LoadMode::kBroadcastBucketed);
    modes.push_back(LoadMode::kShardAllgather);
  }
  return modes;
}

}  // namespace firstframe
