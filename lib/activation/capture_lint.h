// Signs that a trace holds something else than what the modules computed.

#ifndef LIB_ACTIVATION_CAPTURE_LINT_H_
#define LIB_ACTIVATION_CAPTURE_LINT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/activation/merge_rows.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

enum class CaptureFault : uint8_t {
  kSameNumbers,  // several modules with the same ones: a buffer read too late
  kMeanOutside,  // mean outside of [min, max]: summed in half precision
  kOtherNumel,   // sum / mean is not what the shape holds: a shard's numbers
};

struct CaptureLint {
  CaptureFault fault = CaptureFault::kSameNumbers;
  std::string template_name;
  std::string module;  // the first
  int64_t rows = 0;
  bool on_left = false;
};

// "the left trace has the same numbers for several modules of ...".
std::string DescribeLint(const CaptureLint& lint);

// Looks at the rows of one side, in their order. Cheap: no text is read.
class CaptureLinter {
 public:
  CaptureLinter(const TraceSide& side, size_t num_templates, bool on_left)
      : side_(side), states_(num_templates), on_left_(on_left) {}

  void Look(uint32_t row, uint32_t tau);
  // A row of `tau` whose numbers were not read.
  void Forget(uint32_t tau) { states_[tau].has_values = false; }

  // One a template and fault.
  std::vector<CaptureLint> Finish(
      const std::vector<std::string>& templates) const;

 private:
  struct State {
    std::array<float, kNumTraceValues> values = {};
    uint32_t key = 0;
    int run = 0, longest = 0;
    uint32_t longest_key = 0;
    bool has_values = false;
  };
  struct Contradiction {
    int64_t rows = 0;
    uint32_t tau = 0, key = 0;  // of the first
    void Count(uint32_t tau, uint32_t key);
  };

  void LookForRepeats(const TraceRow& row, State* state);
  void LookForContradictions(const TraceRow& row, uint32_t tau);

  const TraceSide& side_;
  std::vector<State> states_;
  Contradiction mean_outside_, other_numel_;
  const bool on_left_;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_CAPTURE_LINT_H_
