// vae_startup's result for a reader.

#ifndef LIB_STARTUP_STARTUP_TEXT_H_
#define LIB_STARTUP_STARTUP_TEXT_H_

#include <ostream>

#include "lib/startup/repeat.h"
#include "lib/startup/startup_report.h"

namespace firstframe {

struct StartupTextOptions {
  int columns = 80;
  bool colour = false;
};

// What ran, the waterfall of phases, what came out.
void WriteStartupText(const StartupContext& context,
                      const CheckpointFacts& checkpoint,
                      const StartupSample& sample,
                      const StartupTextOptions& options, std::ostream& out);

// A table of phases with minimum, median and 95th percentile over the runs.
void WriteRepeatText(const RepeatResult& result, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_STARTUP_STARTUP_TEXT_H_
