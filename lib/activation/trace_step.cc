#include "lib/activation/trace_step.h"

namespace firstframe {
namespace {

thread_local std::optional<int64_t> current_step;

}  // namespace

std::optional<int64_t> CurrentTraceStep() { return current_step; }

TraceStep::TraceStep(std::optional<int64_t> step) : previous_(current_step) {
  current_step = step;
}

TraceStep::~TraceStep() { current_step = previous_; }

}  // namespace firstframe
