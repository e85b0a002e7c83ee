// Ctrl-C as a question: has the user asked to stop?

#ifndef LIB_CLI_INTERRUPT_H_
#define LIB_CLI_INTERRUPT_H_

namespace firstframe::cli {

// From now on the first SIGINT or SIGTERM only sets a flag; the second one acts
// as usual, so that a program that does not look can still be ended. Call once,
// from main.
void CatchInterrupts();

// Returns the signal that came, or 0. Async-signal-safe and thread-safe.
int InterruptSignal();

}  // namespace firstframe::cli

#endif  // LIB_CLI_INTERRUPT_H_
