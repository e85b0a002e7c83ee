// Traces of a toy network and golden ones, compared.

#ifndef LIB_ACTIVATION_COMPARE_TESTING_H_
#define LIB_ACTIVATION_COMPARE_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "lib/activation/compare.h"
#include "lib/activation/trace_input.h"

namespace firstframe::testing {

// Opens one of testdata/activation_trace.
TraceInput GoldenTrace(absl::string_view name);

// A comparison and what it borrows from.
struct Compared {
  TraceInput a, b;
  Comparison result;
};

std::unique_ptr<Compared> Compare(TraceInput a, TraceInput b,
                                  const CompareOptions& options = {});
std::unique_ptr<Compared> CompareText(std::string a, std::string b,
                                      const CompareOptions& options = {});

// Where the traces part, or "none".
std::string FirstOf(const Comparison& c);

// The values of one record of ToyTrace.
struct Toy {
  std::string module, tensor = "out", step = "null", extra;
  double abs_mean = 1, std = 1.2, mean = 0.01;
  std::string shape = "[1, 64, 64]", dtype = "torch.bfloat16";
  bool omit = false;
};

// Returns a trace of a small residual network; `change` edits the values of
// each record.
std::string ToyTrace(const std::function<void(Toy&)>& change = {},
                     int layers = 12, const std::string& step = "null",
                     uint32_t noise_seed = 0);

}  // namespace firstframe::testing

#endif  // LIB_ACTIVATION_COMPARE_TESTING_H_
