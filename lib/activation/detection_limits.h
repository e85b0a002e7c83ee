// The smallest errors that a comparison could have seen, by sub-operation.

#ifndef LIB_ACTIVATION_DETECTION_LIMITS_H_
#define LIB_ACTIVATION_DETECTION_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/activation/align.h"
#include "lib/activation/divergence.h"

namespace firstframe {

// Of one sub-operation, at all depths, steps and calls. Smaller errors drown in
// what is usual there: no comparison of two runs can tell them.
struct DetectionLimits {
  struct Range {
    double low = 0, high = 0;
  };
  std::string template_name;
  int64_t pairs = 0;
  int64_t fired = 0;
  Range statistics;
  std::optional<Range> elements;  // where there are sketches
  double worst_statistics = 0;    // what was seen
  double worst_elements = -1;     // negative: not known
};

// The highest limit first. Of pairs that differ, up to the first divergence:
// behind it, its own error is what is usual.
std::vector<DetectionLimits> FindDetectionLimits(const Alignment& alignment,
                                                 const Divergence& divergence);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_DETECTION_LIMITS_H_
