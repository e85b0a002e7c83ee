#include "lib/cli/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace firstframe::cli {
namespace {

constexpr std::chrono::milliseconds kQuietStart(300);
constexpr std::chrono::milliseconds kRedraw(100);
constexpr int kBarCells = 24;

}  // namespace

Progress::Progress(std::ostream& err, bool enabled, std::string label)
    : err_(err),
      enabled_(enabled),
      label_(std::move(label)),
      start_(std::chrono::steady_clock::now()),
      last_draw_(start_ + kQuietStart - kRedraw) {}

Progress::~Progress() { Clear(); }

void Progress::Update(double fraction, absl::string_view detail) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_draw_ < kRedraw) return;
  last_draw_ = now;
  fraction = std::clamp(fraction, 0.0, 1.0);
  const double spent_s = std::chrono::duration<double>(now - start_).count();
  const int full = static_cast<int>(fraction * kBarCells);
  std::string left;
  if (fraction > 0.02) {
    left =
        absl::StrFormat("  %.0f s left", spent_s * (1 - fraction) / fraction);
  }
  err_ << absl::StrFormat("\r\x1b[K%s [%s%s] %3.0f%%%s%s%s", label_,
                          std::string(full, '#'),
                          std::string(kBarCells - full, ' '), 100 * fraction,
                          left, detail.empty() ? "" : "  ", detail)
       << std::flush;
  is_drawn_ = true;
}

void Progress::Clear() {
  if (!is_drawn_) return;
  err_ << "\r\x1b[K" << std::flush;
  is_drawn_ = false;
}

}  // namespace firstframe::cli
