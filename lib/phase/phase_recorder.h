// Collects the phases of a run: of one thread, and of those that join it.

#ifndef LIB_PHASE_PHASE_RECORDER_H_
#define LIB_PHASE_PHASE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/phase/phase_log.h"
#include "lib/phase/phase_record.h"
#include "lib/timing/clock.h"

namespace firstframe {

class PhaseRecorder;

// A phase as a place under which another thread hangs its own. Default: none.
struct PhaseAnchor {
  PhaseRecorder* recorder = nullptr;
  int32_t lane = 0;
  int32_t index = internal::kNoPhase;
};

// An interval measured by other means than a running phase, in the recorder's
// clock. It may begin before the recorder was made: the origin moves to it.
struct MeasuredPhase {
  std::string name;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  absl::Status status;
  PhaseAnchor parent;
  std::vector<PhaseAttribute> attributes;
};

// Thread-safe. Must outlive every PhaseCollector on it.
class PhaseRecorder {
 public:
  struct Options {
    const Clock* clock = &MonotonicClock::Get();
    // Called on the thread of the phase before each reading of the clock, at
    // the begin and the end of every phase: for instance to wait for a device.
    // It changes what overlaps with what. Empty: host time, submission only.
    std::function<void()> synchronize;
    // The time that offset 0 stands for. Empty: when the recorder is made.
    std::optional<int64_t> origin_ns;
  };

  PhaseRecorder() : PhaseRecorder(Options{}) {}
  explicit PhaseRecorder(Options options);
  PhaseRecorder(const PhaseRecorder&) = delete;
  PhaseRecorder& operator=(const PhaseRecorder&) = delete;

  // `phase` goes to its parent's lane, else to the first one. An end before the
  // start counts as a duration of 0.
  void Add(MeasuredPhase phase);

  // Everything so far, at any moment and from any thread. A phase that is still
  // open ends now, with status "error" and the message of `interruption`, or
  // "still open" without one. The recording ends when the last collector did,
  // else now. Phases are in order of start, with ids from 0 in that order.
  PhaseReport Report(const absl::Status& interruption = absl::OkStatus()) const;

  int64_t NowNs() const { return options_.clock->NowNs(); }

 private:
  friend class PhaseCollector;

  struct Lane {
    PhaseLane description;
    PhaseAnchor parent;
    std::unique_ptr<internal::PhaseLog> log;
  };

  // Returns the new lane's number and log.
  std::pair<int32_t, internal::PhaseLog*> OpenLane(absl::string_view name,
                                                   const PhaseAnchor& parent);
  void CloseLane();

  const Options options_;
  const int64_t origin_ns_;
  // Guards what follows. Not absl::Mutex: ThreadSanitizer does not see into the
  // packaged library.
  mutable std::mutex mutex_;
  std::vector<Lane> lanes_;
  std::vector<MeasuredPhase> measured_;
  int open_lanes_ = 0;
  std::optional<int64_t> end_ns_;
};

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_RECORDER_H_
