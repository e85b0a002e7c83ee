// What is known of a terminal: whether it is one, its width, whether it takes
// colours.

#ifndef LIB_CLI_TTY_H_
#define LIB_CLI_TTY_H_

#include "absl/strings/string_view.h"

namespace firstframe::cli {

// Returns whether `fd` is a terminal.
bool IsTerminal(int fd);

// Returns the width of the terminal `fd` in columns, or `otherwise` when it is
// none or says 0.
int TerminalColumns(int fd, int otherwise = 80);

// Decides on colours. `choice` is "auto", "always" or "never"; `no_color` and
// `term` are the variables' values, null when unset. See no-color.org: any
// non-empty NO_COLOR turns colours off.
bool UseColor(absl::string_view choice, bool is_terminal, const char* no_color,
              const char* term);

}  // namespace firstframe::cli

#endif  // LIB_CLI_TTY_H_
