#include "lib/cli/tty.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace firstframe::cli {

bool IsTerminal(int fd) { return ::isatty(fd) == 1; }

int TerminalColumns(int fd, int otherwise) {
  winsize size = {};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

bool UseColor(absl::string_view choice, bool is_terminal, const char* no_color,
              const char* term) {
  if (choice == "always") return true;
  if (choice == "never" || !is_terminal) return false;
  if (no_color != nullptr && no_color[0] != '\0') return false;
  return term == nullptr || absl::string_view(term) != "dumb";
}

}  // namespace firstframe::cli
