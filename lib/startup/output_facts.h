// What a report says of the decoded frames.

#ifndef LIB_STARTUP_OUTPUT_FACTS_H_
#define LIB_STARTUP_OUTPUT_FACTS_H_

#include "lib/startup/startup_report.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

// Looks at every value, on all compute threads; the result does not depend on
// how many there are. NaN counts for is_finite and the mean alone.
OutputFacts DescribeOutput(const FloatTensor& output);

}  // namespace firstframe

#endif  // LIB_STARTUP_OUTPUT_FACTS_H_
