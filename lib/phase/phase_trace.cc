#include "lib/phase/phase_trace.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "lib/perfetto/trace_writer.h"
#include "lib/phase/phase_tree.h"

namespace firstframe {
namespace {

// A phase in the depth-first order of the tree.
struct Slice {
  size_t order = 0;
  size_t subtree_end = 0;  // order of the first slice that is no descendant
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  const PhaseRecord* phase = nullptr;
};

// One row of slices that nest.
struct Track {
  uint64_t id = 0;
  std::vector<Slice> open;
};

bool IsAncestor(const Slice& a, const Slice& b) {
  return a.order < b.order && b.order < a.subtree_end;
}

class PhaseTraceWriter {
 public:
  PhaseTraceWriter(const PhaseReport& report, std::string* out)
      : report_(report), trace_(out) {}

  void Write(absl::string_view process_name) {
    std::vector<std::vector<Slice>> lanes(
        std::max<size_t>(report_.lanes.size(), 1));
    for (const Slice& slice : Slices()) {
      const size_t lane = slice.phase->lane;
      lanes[lane < lanes.size() ? lane : 0].push_back(slice);
    }
    for (size_t i = 0; i < lanes.size(); ++i) {
      const PhaseLane lane =
          i < report_.lanes.size() ? report_.lanes[i] : PhaseLane{"main", 1, 1};
      WriteLane(AddLane(lane, process_name), std::move(lanes[i]));
    }
  }

 private:
  std::vector<Slice> Slices() const {
    const PhaseTree tree = BuildPhaseTree(report_);
    // The trace cannot hold times before 0.
    int64_t shift_ns = 0;
    for (const PhaseRecord& phase : report_.phases) {
      shift_ns = std::max(shift_ns, -phase.start_offset_ns);
    }
    std::vector<Slice> slices;
    std::vector<size_t> path;  // orders of the ancestors
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      for (; path.size() > static_cast<size_t>(tree.nodes[i].depth);
           path.pop_back()) {
        slices[path.back()].subtree_end = i;
      }
      path.push_back(i);
      const PhaseRecord& phase = report_.phases[tree.nodes[i].index];
      const int64_t start_ns = phase.start_offset_ns + shift_ns;
      slices.push_back({.order = i,
                        .start_ns = start_ns,
                        .end_ns = start_ns + phase.duration_ns,
                        .phase = &phase});
    }
    for (const size_t open : path) slices[open].subtree_end = slices.size();
    return slices;
  }

  uint64_t AddLane(const PhaseLane& lane, absl::string_view process_name) {
    const auto [process, is_new] = processes_.try_emplace(lane.pid, 0);
    if (is_new) {
      process->second = trace_.AddProcess(
          lane.pid, processes_.size() == 1 ? process_name : lane.name);
    }
    return trace_.AddThread(process->second, lane.pid, lane.tid, lane.name);
  }

  void WriteLane(uint64_t lane, std::vector<Slice> slices) {
    std::stable_sort(
        slices.begin(), slices.end(),
        [](const Slice& a, const Slice& b) { return a.start_ns < b.start_ns; });
    std::vector<Track> tracks = {{.id = lane}};
    for (const Slice& slice : slices) {
      Track* const track = FindTrack(slice, &tracks);
      if (track != nullptr) {
        Begin(slice, track);
      } else {
        tracks.push_back({.id = trace_.AddTrack(
                              absl::StrCat("overlap ", tracks.size()), lane)});
        Begin(slice, &tracks.back());
      }
    }
    for (Track& track : tracks) {
      while (!track.open.empty()) End(&track);
    }
  }

  // Returns the first track on which `slice` nests, after closing what has
  // ended.
  Track* FindTrack(const Slice& slice, std::vector<Track>* tracks) {
    for (Track& track : *tracks) {
      while (!track.open.empty()) {
        const Slice& top = track.open.back();
        // A child of no length may sit on the very end of its parent.
        const bool has_ended =
            top.end_ns < slice.start_ns ||
            (top.end_ns == slice.start_ns && !IsAncestor(top, slice));
        if (!has_ended) break;
        End(&track);
      }
      if (track.open.empty() || slice.end_ns <= track.open.back().end_ns) {
        return &track;
      }
    }
    return nullptr;
  }

  void Begin(const Slice& slice, Track* track) {
    std::vector<TraceAnnotation> annotations;
    const PhaseRecord& phase = *slice.phase;
    for (const PhaseAttribute& attribute : phase.attributes) {
      TraceAnnotation annotation = {.name = attribute.name, .value = false};
      if (const auto* text = std::get_if<std::string>(&attribute.value)) {
        annotation.value = absl::string_view(*text);
      } else if (const auto* real = std::get_if<double>(&attribute.value)) {
        annotation.value = *real;
      } else {
        annotation.value = std::get<int64_t>(attribute.value);
      }
      annotations.push_back(annotation);
    }
    const bool is_error = phase.status == PhaseStatus::kError;
    if (is_error) {
      annotations.push_back(
          {.name = "error", .value = absl::string_view(phase.error)});
    }
    trace_.BeginSlice(track->id, slice.start_ns, phase.name,
                      {.category = is_error ? "phase,error" : "phase",
                       .annotations = annotations});
    track->open.push_back(slice);
  }

  void End(Track* track) {
    trace_.EndSlice(track->id, track->open.back().end_ns);
    track->open.pop_back();
  }

  const PhaseReport& report_;
  TraceWriter trace_;
  absl::flat_hash_map<int64_t, uint64_t> processes_;
};

}  // namespace

void WritePhaseTrace(const PhaseReport& report, absl::string_view process_name,
                     std::string* out) {
  PhaseTraceWriter(report, out).Write(process_name);
}

}  // namespace firstframe
