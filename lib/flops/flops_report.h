// The cost of a run of one model or a pipeline, with every input of the
// formula.

#ifndef LIB_FLOPS_FLOPS_REPORT_H_
#define LIB_FLOPS_FLOPS_REPORT_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/json_writer.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/operator_cost.h"
#include "lib/flops/peak_choice.h"
#include "lib/flops/run_cost.h"
#include "lib/flops/video_size.h"

namespace firstframe {

struct FlopsRequest {
  VideoSize video;
  int64_t batch = 1;
  std::optional<int64_t> text_tokens;  // nothing: the family's default
  std::optional<int64_t> image_tokens;
  bool per_token_timesteps = false;
  RunOptions run;
  VaeTiling tiling;
  bool encodes = false;  // price the VAE's encoder instead of its decoder
  MathType math = MathType::kBf16;
  PeakChoice peak;                // for `math`
  std::optional<double> time_ms;  // measured, of the run
};

// One component of the run.
struct ComponentCost {
  ModelDescription model;
  int64_t tokens = 0;  // it runs on, a sample
  int64_t text_tokens = 0;
  ForwardCost forward;  // of one call
  double calls = 1;     // in the run
  RunCost run;
  std::optional<double> compat_forward;  // the original's figure, one sample
};

struct FlopsReport {
  FlopsRequest request;
  std::vector<ComponentCost> components;
  RunCost total;
  std::optional<Utilization> utilization;  // with a measured time
};

// Prices `models` as one run: transformers by the request's options, encoders
// once, a VAE once. Errors of the cost models, with the component's name.
absl::StatusOr<FlopsReport> BuildFlopsReport(
    std::vector<ModelDescription> models, const FlopsRequest& request);

void WriteFlopsText(const FlopsReport& report, std::ostream& out);
// Writes members of the document's object: "context", "components", "summary".
void WriteFlopsJson(const FlopsReport& report, JsonWriter& json);

}  // namespace firstframe

#endif  // LIB_FLOPS_FLOPS_REPORT_H_
