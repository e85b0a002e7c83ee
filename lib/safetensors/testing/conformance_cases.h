// One small file for every way in which a safetensors file can be odd or wrong,
// with the verdict that the format, the reference reader and this repository
// give it. Built here, so that each byte has its reason in sight.

#ifndef LIB_SAFETENSORS_TESTING_CONFORMANCE_CASES_H_
#define LIB_SAFETENSORS_TESTING_CONFORMANCE_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe::testing {

enum class Verdict {
  kAccept,       // in strict mode too
  kLenientOnly,  // refused in strict mode, a warning in lenient mode
  kRefuse,       // in both modes
};

struct ConformanceCase {
  std::string name;  // also a file name
  std::string bytes;
  bool reference_accepts = false;  // huggingface/safetensors
  Verdict verdict = Verdict::kRefuse;
  std::string rule;  // of the finding (a warning's for kAccept, or empty)
};

// Returns 8 bytes of length, `json` and `data_size` bytes of data.
std::string BuildSafetensors(absl::string_view json, uint64_t data_size);

// Returns `length` as the 8 bytes that begin a file.
std::string HeaderLength(uint64_t length);

// All cases but those of many megabytes; names are unique.
std::vector<ConformanceCase> ConformanceCases();

}  // namespace firstframe::testing

#endif  // LIB_SAFETENSORS_TESTING_CONFORMANCE_CASES_H_
