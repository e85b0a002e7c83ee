// Phases as code marks them.
//
//   PhaseRecorder recorder;
//   {
//     PhaseCollector collector(&recorder);   // this thread, this scope
//     FF_ASSIGN_OR_RETURN(Model model, RunPhase("vae.construct", [&] {
//       return BuildModel(config);           // a Status or StatusOr that is
//       not
//     }));                                   // OK makes the phase an error
//   }
//   const PhaseReport report = recorder.Report();
//
// Where nothing collects, a phase costs one branch (docs/benchmarks.md).
//
// Code that can fail uses RunPhase: every return inside the function passes
// through it, so no error is missed. Code that cannot uses ScopedPhase.

#ifndef LIB_PHASE_PHASE_H_
#define LIB_PHASE_PHASE_H_

#include <concepts>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/phase/phase_log.h"
#include "lib/phase/phase_recorder.h"

namespace firstframe {

// Sends this thread's phases to a recorder until the end of the scope, then
// restores what was there before: collectors nest, and the inner one takes the
// phases. Other threads are not affected; a thread that works for this one
// opens a collector of its own under CurrentPhase(). Neither copied nor moved;
// destroyed on the thread that made it.
class PhaseCollector {
 public:
  // `recorder` must outlive the collector. `lane` names the timeline row.
  explicit PhaseCollector(PhaseRecorder* recorder,
                          absl::string_view lane = "main");

  // Joins the recorder of `parent`; its phases become children of that phase.
  // An anchor of no recorder collects nothing.
  PhaseCollector(const PhaseAnchor& parent, absl::string_view lane);

  ~PhaseCollector();
  PhaseCollector(const PhaseCollector&) = delete;
  PhaseCollector& operator=(const PhaseCollector&) = delete;

 private:
  void Install(PhaseRecorder* recorder, absl::string_view lane,
               const PhaseAnchor& parent);

  PhaseRecorder* recorder_ = nullptr;
  internal::PhaseLog* log_ = nullptr;
  internal::PhaseLog* previous_log_ = nullptr;
  PhaseAnchor previous_lane_;
};

// Returns the innermost open phase of this thread, to be handed to another.
// Without an open phase it stands for the lane itself; without a collector, for
// nothing.
PhaseAnchor CurrentPhase();

// One phase, from construction to the end of the scope. Ends with status "ok",
// or "error" when Fail was called or the scope is left by an exception.
class ScopedPhase {
 public:
  // `name` is copied.
  explicit ScopedPhase(absl::string_view name)
      : log_(internal::current_phase_log) {
    if (log_ == nullptr) return;
    exceptions_ = std::uncaught_exceptions();
    index_ = log_->Open(name);
  }

  ~ScopedPhase() {
    if (log_ == nullptr) return;
    if (std::uncaught_exceptions() > exceptions_) {
      internal::FailPhaseByException(*log_, index_);
    }
    log_->Close(index_);
  }

  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

  // Makes the phase an error with the message of `status`; the first one stays.
  // An OK status changes nothing.
  void Fail(const absl::Status& status) {
    if (log_ != nullptr && !status.ok()) {
      internal::FailPhase(*log_, index_, status);
    }
  }

  // A fact about the phase, with the unit in its name: ("read_bytes", 512). The
  // last value of a name counts.
  template <std::integral T>
  void SetAttribute(absl::string_view name, T value) {
    if (log_ == nullptr) return;
    internal::SetPhaseAttribute(*log_, index_, name,
                                static_cast<int64_t>(value));
  }
  void SetAttribute(absl::string_view name, double value) {
    if (log_ == nullptr) return;
    internal::SetPhaseAttribute(*log_, index_, name, value);
  }
  void SetAttribute(absl::string_view name, absl::string_view value) {
    if (log_ == nullptr) return;
    internal::SetPhaseAttribute(*log_, index_, name, std::string(value));
  }
  void SetAttribute(absl::string_view name, const char* value) {
    SetAttribute(name, absl::string_view(value));
  }

 private:
  internal::PhaseLog* const log_;
  int32_t index_ = internal::kNoPhase;
  int exceptions_ = 0;
};

// Runs `function` as phase `name` and returns what it returns. A Status or
// StatusOr that is not OK, or an exception, makes the phase an error.
// `function` takes nothing, or the ScopedPhase& (to set attributes).
template <typename Function>
auto RunPhase(absl::string_view name, Function&& function) {
  ScopedPhase phase(name);
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<Function, ScopedPhase&>) {
      return std::forward<Function>(function)(phase);
    } else {
      return std::forward<Function>(function)();
    }
  };
  using Result = decltype(call());
  if constexpr (std::is_void_v<Result>) {
    call();
  } else {
    std::decay_t<Result> result = call();
    if constexpr (std::is_same_v<std::decay_t<Result>, absl::Status>) {
      phase.Fail(result);
    } else if constexpr (requires {
                           {
                             result.status()
                             } -> std::convertible_to<absl::Status>;
                         }) {
      phase.Fail(result.status());
    }
    return result;
  }
}

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_H_
