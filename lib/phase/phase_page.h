// Phase reports as one self-contained HTML page.

#ifndef LIB_PHASE_PHASE_PAGE_H_
#define LIB_PHASE_PHASE_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lib/phase/phase_document.h"

namespace firstframe {

// Returns the page: totals, a timeline that zooms, gaps hatched, the table of
// phases with each run's sample, errors, and the context. Without JavaScript it
// shows the first sample's text waterfall.
std::string RenderPhasePage(const PhaseDocument& document,
                            absl::string_view title);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_PAGE_H_
