#include "absl/strings/match.h"
#include "lib/base/glob.h"
#include "lib/regions/region.h"
#include "lib/trace/trace_analysis.h"

namespace firstframe::trace_analysis {

uint32_t TraceAnalysis::RegionOf(uint32_t annotation) {
  const auto [found, added] = region_of_.try_emplace(annotation, kNone);
  if (!added) return found->second;
  const std::string& name = names_.Get(annotation);
  std::string shown;
  if (absl::StartsWith(name, kRegionSpanPrefix)) {
    shown = ShortRegionName(name);
  } else if (options_.all_annotations || !summary_.has_named_regions) {
    // Steps are one region however many there are.
    shown = absl::StartsWith(name, "ProfilerStep#") ? "ProfilerStep" : name;
    if (absl::StartsWith(name, "fastvideo.profiler.")) shown.clear();
  }
  if (!options_.region_glob.empty() && !shown.empty() &&
      !GlobMatch(options_.region_glob, shown)) {
    shown.clear();
  }
  const uint32_t region = shown.empty() ? kNone : names_.Intern(shown);
  region_of_[annotation] = region;
  return region;
}

// Walks each thread's spans with a stack: what is open when a launch is made.
absl::Status TraceAnalysis::SweepHost() {
  for (uint32_t id = 1; id < names_.size(); ++id) {
    if (absl::StartsWith(names_.Get(id), kRegionSpanPrefix)) {
      summary_.has_named_regions = true;
    }
  }
  FF_RETURN_IF_ERROR(host_.Sort());
  struct Open {
    int64_t end;
    uint32_t op;        // the innermost operator, this one included
    uint32_t instance;  // likewise
  };
  std::vector<Open> stack;
  uint32_t thread = kNone;
  for (HostSpan span; host_.Next(&span);) {
    if (span.thread != thread) {
      thread = span.thread;
      stack.clear();
    }
    // Ends are exclusive: a span that starts where another ends follows it.
    while (!stack.empty() && stack.back().end <= span.start) {
      // An empty span at the very end of its parent is still inside.
      if (stack.back().end == span.start && span.end == span.start) break;
      stack.pop_back();
    }
    const uint32_t op = stack.empty() ? 0 : stack.back().op;
    const uint32_t instance = stack.empty() ? kNone : stack.back().instance;
    switch (span.type) {
      case HostType::kLaunch:
        ++summary_.launch_count;
        for (const uint32_t region : paths_[PathOf(instance)]) {
          ++regions_[region].summary.launch_count;
        }
        FF_RETURN_IF_ERROR(launches_.Add({.correlation = span.correlation,
                                          .start = span.start,
                                          .end = span.end,
                                          .op = op,
                                          .instance = instance,
                                          .thread = span.thread}));
        break;
      case HostType::kOp:
        stack.push_back({span.end, span.name, instance});
        break;
      case HostType::kAnnotation: {
        const uint32_t region = RegionOf(span.name);
        if (region == kNone) break;
        if (instances_.size() >= kMaxInstances) {
          ++summary_.regions_over_limit;
          break;
        }
        instances_.push_back({.start = span.start,
                              .end = span.end,
                              .gpu_end = span.end,
                              .region = region,
                              .parent = instance,
                              .thread = span.thread});
        stack.push_back(
            {span.end, op, static_cast<uint32_t>(instances_.size() - 1)});
        break;
      }
    }
  }
  FF_RETURN_IF_ERROR(host_.status());
  by_start_.resize(instances_.size());
  for (uint32_t i = 0; i < by_start_.size(); ++i) by_start_[i] = i;
  std::sort(by_start_.begin(), by_start_.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(instances_[a].start, a) < std::tie(instances_[b].start, b);
  });
  int64_t max_end = INT64_MIN;
  for (const uint32_t i : by_start_) {
    max_end = std::max(max_end, instances_[i].end);
    max_end_before_.push_back(max_end);
  }
  return absl::OkStatus();
}

// The region entered last among those of the process open at `time`.
uint32_t TraceAnalysis::InstanceAt(int64_t time, int64_t pid) const {
  const auto after = std::upper_bound(
      by_start_.begin(), by_start_.end(), time,
      [&](int64_t t, uint32_t i) { return t < instances_[i].start; });
  for (auto it = after; it != by_start_.begin();) {
    --it;
    if (max_end_before_[it - by_start_.begin()] <= time) break;
    const Instance& instance = instances_[*it];
    if (instance.end > time && thread_pids_[instance.thread] == pid) {
      return *it;
    }
  }
  return kNone;
}

// Joins the device's work with its launches, both in order of correlation.
absl::Status TraceAnalysis::JoinLaunches() {
  FF_RETURN_IF_ERROR(launches_.Sort());
  FF_RETURN_IF_ERROR(gpu_.Sort());
  Launch launch;
  bool has_launch = launches_.Next(&launch);
  // The launch in hand, kept for all work of one correlation (graphs).
  Launch current = {};
  bool has_current = false;
  for (GpuEvent event; gpu_.Next(&event);) {
    while (has_launch && launch.correlation <= event.correlation) {
      // Of a runtime call and the driver call inside it, the first.
      if (!has_current || current.correlation != launch.correlation) {
        current = launch;
        has_current = true;
      }
      has_launch = launches_.Next(&launch);
    }
    if (event.correlation != 0 && has_current &&
        current.correlation == event.correlation) {
      event.op = current.op;
      event.launch_end = current.end;
      event.instance = current.instance;
      if (event.instance == kNone) {
        event.instance =
            InstanceAt(current.start, thread_pids_[current.thread]);
        event.by_time = event.instance != kNone;
      }
    } else {
      ++summary_.gpu_without_launch;
    }
    if (event.instance == kNone) ++summary_.gpu_outside_regions;
    FF_RETURN_IF_ERROR(timeline_.Add(event));
  }
  FF_RETURN_IF_ERROR(launches_.status());
  return gpu_.status();
}

// The distinct regions an instance lies in, as a number.
uint32_t TraceAnalysis::PathOf(uint32_t instance) {
  if (instance == kNone) return 0;
  const auto [found, added] = path_of_.try_emplace(instance, 0);
  if (!added) return found->second;
  std::vector<uint32_t> path;
  for (uint32_t i = instance; i != kNone; i = instances_[i].parent) {
    path.push_back(instances_[i].region);
  }
  std::sort(path.begin(), path.end());
  path.erase(std::unique(path.begin(), path.end()), path.end());
  const auto [known, is_new] =
      path_ids_.try_emplace(path, static_cast<uint32_t>(paths_.size()));
  if (is_new) paths_.push_back(std::move(path));
  path_of_[instance] = known->second;
  return known->second;
}

}  // namespace firstframe::trace_analysis
