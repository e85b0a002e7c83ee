// What rows behind a jump say about it.

#ifndef LIB_ACTIVATION_CONFIRM_JUMPS_H_
#define LIB_ACTIVATION_CONFIRM_JUMPS_H_

#include <cstddef>

#include "lib/activation/align.h"
#include "lib/activation/divergence.h"

namespace firstframe {

// Rows behind a jump that are looked at.
inline constexpr size_t kConfirmRows = 12;

// Keeps the jumps that rows behind them confirm, counts them, and finds the
// first. One that nothing confirms must be twice as large, or goes.
void ConfirmJumps(const DivergenceOptions& options, Divergence* divergence);

// Marks parents: they complete after their children, so when one of those fired
// in the same call, the parent's jump is its consequence.
void FoldParents(const Alignment& alignment, Divergence* divergence);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_CONFIRM_JUMPS_H_
