// A progress line on a terminal: label, bar, share and time left, redrawn at
// most ten times a second and erased at the end.

#ifndef LIB_CLI_PROGRESS_H_
#define LIB_CLI_PROGRESS_H_

#include <chrono>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace firstframe::cli {

// Thread-compatible. Draws nothing when not `enabled` (see Io::progress), and
// nothing in the first 300 ms, so that quick work stays quiet.
class Progress {
 public:
  Progress(std::ostream& err, bool enabled, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows that `fraction` (0 to 1) is done; `detail` follows the bar.
  void Update(double fraction, absl::string_view detail = "");

  // Erases the line. Also done by the destructor.
  void Clear();

 private:
  std::ostream& err_;
  const bool enabled_;
  const std::string label_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
  bool is_drawn_ = false;
};

}  // namespace firstframe::cli

#endif  // LIB_CLI_PROGRESS_H_
