// The denoising step that records carry: FastVideo's trace_step().

#ifndef LIB_ACTIVATION_TRACE_STEP_H_
#define LIB_ACTIVATION_TRACE_STEP_H_

#include <cstdint>
#include <optional>

namespace firstframe {

// Returns this thread's current step; nothing outside of any TraceStep.
std::optional<int64_t> CurrentTraceStep();

// Sets this thread's step (nothing: none) for as long as it lives, then
// restores the one before. Other threads see nothing of it, as in FastVideo.
class TraceStep {
 public:
  explicit TraceStep(std::optional<int64_t> step);
  ~TraceStep();
  TraceStep(const TraceStep&) = delete;
  TraceStep& operator=(const TraceStep&) = delete;

 private:
  const std::optional<int64_t> previous_;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_STEP_H_
