#include "lib/observe/startup_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace firstframe {
namespace {

// An interval on its way to a phase. Of two equal ones the lower rank is
// outside.
struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int rank = 0;
  std::string name;
  std::vector<PhaseAttribute> attributes;
};

enum Rank { kProcessRank, kImportRank, kLoadRank, kCallRank };

constexpr const char* kSumNames[kNumCudaSums] = {
    "cuda.module",   "cuda.allocate", "cuda.pin_host",
    "cuda.copy_h2d", "cuda.copy_d2h", "cuda.wait"};

absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

std::string CudaName(const ObservedEvent& event) {
  if (event.slot >= 1 && event.slot <= kNumCudaSums) {
    return kSumNames[event.slot - 1];
  }
  if (event.name == "cuInit") return "cuda.init";
  if (absl::StrContains(event.name, "Ctx")) return "cuda.context";
  return "cuda.first_kernel";
}

std::optional<Interval> FromEvent(const ObservedEvent& event, int64_t min_ns,
                                  bool* is_first_of_sum) {
  Interval interval = {
      .start_ns = event.start_ns, .end_ns = event.end_ns, .rank = kCallRank};
  const bool is_short = event.end_ns - event.start_ns < min_ns;
  switch (event.kind) {
    case EventKind::kDlopen:
      if (is_short) return std::nullopt;
      interval.rank = kLoadRank;
      interval.name = absl::StrCat("load ", Basename(event.name));
      interval.attributes = {
          {"path", event.name},
          {"added_libraries", static_cast<int64_t>(event.value)}};
      return interval;
    case EventKind::kFile:
      interval.name = absl::StrCat("open ", Basename(event.name));
      interval.attributes = {{"path", event.name},
                             {"size_bytes", static_cast<int64_t>(event.value)}};
      return interval;
    case EventKind::kCuda:
      // The writer keeps the first of each sum and the long ones.
      if (event.slot != 0 && is_short && !*is_first_of_sum) return std::nullopt;
      interval.name = CudaName(event);
      interval.attributes = {{"function", event.name}};
      if (event.value > 0) {
        interval.attributes.push_back(
            {"bytes", static_cast<int64_t>(event.value)});
      }
      return interval;
    case EventKind::kRegion:
      interval.name = absl::StrCat("region ", event.name);
      return interval;
    case EventKind::kLibrary:
      break;
  }
  return std::nullopt;
}

class TimelineBuilder {
 public:
  TimelineBuilder(const ProgramExit& launched,
                  const StartupTimelineOptions& options)
      : launched_(launched), options_(options) {
    report_.recording_duration_ns = launched.exit_ns - launched.fork_ns;
  }

  PhaseReport Build(absl::Span<const ObservedProcess> processes) {
    std::vector<const ObservedProcess*> own, others;
    for (const ObservedProcess& process : processes) {
      (process.pid == launched_.pid ? own : others).push_back(&process);
    }
    AddLane(absl::StrCat(own.empty() ? "program"
                                     : ShortCommand(own.back()->command)),
            launched_.pid, launched_.pid, OwnThread(own));
    for (const ObservedProcess* process : own) AddThreads(*process);
    for (const ObservedProcess* process : others) {
      AddLane(
          absl::StrCat(ShortCommand(process->command), " (", process->pid, ")"),
          process->pid, process->pid, OtherProcess(*process));
      AddThreads(*process);
    }
    std::stable_sort(report_.phases.begin(), report_.phases.end(),
                     [](const PhaseRecord& a, const PhaseRecord& b) {
                       return a.start_offset_ns < b.start_offset_ns;
                     });
    return std::move(report_);
  }

 private:
  // The launched process: its images one after the other, without a gap.
  std::vector<Interval> OwnThread(
      const std::vector<const ObservedProcess*>& images) {
    std::vector<Interval> intervals;
    const auto phase = [&](std::string name, int64_t start_ns, int64_t end_ns) {
      intervals.push_back({.start_ns = start_ns,
                           .end_ns = std::max(start_ns, end_ns),
                           .rank = kProcessRank,
                           .name = std::move(name)});
    };
    // The launcher may have learnt of the exec late, when it was not scheduled.
    int64_t at = images.empty()
                     ? launched_.exec_ns
                     : std::min(launched_.exec_ns, images[0]->start_ns);
    phase("process.exec", launched_.fork_ns, at);
    for (size_t i = 0; i < images.size(); ++i) {
      const ObservedProcess& image = *images[i];
      const bool is_last = i + 1 == images.size();
      const int64_t image_end =
          is_last ? launched_.exit_ns : images[i + 1]->start_ns;
      const int64_t program_end =
          is_last ? EndOfProgram(image).value_or(image_end) : image_end;
      const std::string suffix =
          images.size() > 1 ? absl::StrCat(" ", ShortCommand(image.command))
                            : "";
      at = AddImage(image, at, std::min(program_end, image_end), suffix, phase);
      if (is_last) phase("process.exit", at, launched_.exit_ns);
      AddEvents(image, image.pid, &intervals);
    }
    if (images.empty()) phase("program", at, launched_.exit_ns);
    return intervals;
  }

  // Adds loading, interpreter and program from `at` on; returns where it ends.
  template <typename AddPhase>
  int64_t AddImage(const ObservedProcess& image, int64_t at, int64_t end_ns,
                   const std::string& suffix, AddPhase& phase) {
    const auto until = [&](const char* name, int64_t time_ns) {
      if (time_ns <= at || time_ns > end_ns) return;
      phase(absl::StrCat(name, suffix), at, time_ns);
      at = time_ns;
    };
    until("process.dynamic_loading", image.main_ns);
    until("python.start", image.python_start_ns);
    phase(absl::StrCat("program", suffix), at, end_ns);
    return std::max(at, end_ns);
  }

  static std::optional<int64_t> EndOfProgram(const ObservedProcess& image) {
    if (image.python_exit_ns > 0) return image.python_exit_ns;
    if (image.exit_ns > 0) return image.exit_ns;
    return std::nullopt;
  }

  // A child: when it was gone is its parent's to know, so it ends with its last
  // trace.
  std::vector<Interval> OtherProcess(const ObservedProcess& process) {
    std::vector<Interval> intervals;
    AddEvents(process, process.pid, &intervals);
    int64_t end_ns = std::max({process.start_ns, process.main_ns,
                               process.python_start_ns, process.exit_ns});
    for (const Interval& interval : intervals) {
      end_ns = std::max(end_ns, interval.end_ns);
    }
    auto phase = [&](std::string name, int64_t start, int64_t end) {
      intervals.push_back({.start_ns = start,
                           .end_ns = std::max(start, end),
                           .rank = kProcessRank,
                           .name = std::move(name)});
    };
    const int64_t program_end = EndOfProgram(process).value_or(end_ns);
    const int64_t at =
        AddImage(process, process.start_ns, program_end, "", phase);
    if (process.exit_ns > at) phase("process.exit", at, end_ns);
    return intervals;
  }

  void AddThreads(const ObservedProcess& process) {
    std::vector<int64_t> threads;
    const auto note = [&](int64_t tid) {
      if (tid == process.pid) return;
      if (std::find(threads.begin(), threads.end(), tid) == threads.end()) {
        threads.push_back(tid);
      }
    };
    for (const ObservedEvent& event : process.events) note(event.tid);
    for (const ObservedImport& import : process.imports) note(import.tid);
    for (const int64_t tid : threads) {
      std::vector<Interval> intervals;
      AddEvents(process, tid, &intervals);
      if (intervals.empty()) continue;
      AddLane(absl::StrCat(ShortCommand(process.command), " thread ", tid),
              process.pid, tid, std::move(intervals));
    }
  }

  void AddEvents(const ObservedProcess& process, int64_t tid,
                 std::vector<Interval>* intervals) {
    bool seen_sums[kNumCudaSums + 1] = {};
    for (const ObservedEvent& event : process.events) {
      bool is_first = false;
      if (event.kind == EventKind::kCuda && event.slot <= kNumCudaSums) {
        is_first = !std::exchange(seen_sums[event.slot], true);
      }
      if (event.tid != tid) continue;
      if (auto interval = FromEvent(event, options_.min_ns, &is_first)) {
        intervals->push_back(*std::move(interval));
      }
    }
    for (const ObservedImport& import : process.imports) {
      if (import.tid != tid ||
          import.end_ns - import.start_ns < options_.min_ns) {
        continue;
      }
      intervals->push_back({.start_ns = import.start_ns,
                            .end_ns = import.end_ns,
                            .rank = kImportRank,
                            .name = absl::StrCat("import ", import.module)});
    }
  }

  // Nests the intervals by time and makes phases of them.
  void AddLane(std::string name, int64_t pid, int64_t tid,
               std::vector<Interval> intervals) {
    if (intervals.empty()) return;
    const auto lane = static_cast<int32_t>(report_.lanes.size());
    report_.lanes.push_back({.name = std::move(name), .pid = pid, .tid = tid});
    std::stable_sort(intervals.begin(), intervals.end(),
                     [](const Interval& a, const Interval& b) {
                       if (a.start_ns != b.start_ns)
                         return a.start_ns < b.start_ns;
                       if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
                       return a.rank < b.rank;
                     });
    struct Open {
      int64_t end_ns;
      int64_t id;
    };
    std::vector<Open> open;
    for (Interval& interval : intervals) {
      while (!open.empty() && (open.back().end_ns < interval.end_ns ||
                               open.back().end_ns <= interval.start_ns)) {
        open.pop_back();
      }
      PhaseRecord phase = {
          .id = next_id_++,
          .name = std::move(interval.name),
          .start_offset_ns = interval.start_ns - launched_.fork_ns,
          .duration_ns = interval.end_ns - interval.start_ns,
          .lane = lane,
          .attributes = std::move(interval.attributes)};
      if (!open.empty()) phase.parent_id = open.back().id;
      open.push_back({.end_ns = interval.end_ns, .id = phase.id});
      report_.phases.push_back(std::move(phase));
    }
  }

  const ProgramExit& launched_;
  const StartupTimelineOptions& options_;
  PhaseReport report_;
  int64_t next_id_ = 0;
};

}  // namespace

std::string ShortCommand(absl::Span<const std::string> command) {
  if (command.empty()) return "program";
  const absl::string_view program = Basename(command[0]);
  if (!absl::StartsWith(program, "python")) return std::string(program);
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word == "-m" && i + 1 < command.size()) {
      return absl::StrCat(program, " -m ", command[i + 1]);
    }
    if (word == "-c") return absl::StrCat(program, " -c");
    if (word == "-X" || word == "-W") {
      ++i;
    } else if (!absl::StartsWith(word, "-")) {
      return absl::StrCat(program, " ", Basename(word));
    }
  }
  return std::string(program);
}

PhaseReport BuildStartupTimeline(const ProgramExit& launched,
                                 absl::Span<const ObservedProcess> processes,
                                 const StartupTimelineOptions& options) {
  return TimelineBuilder(launched, options).Build(processes);
}

}  // namespace firstframe
