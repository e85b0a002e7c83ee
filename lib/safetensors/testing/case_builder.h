// Short ways to write a conformance case. Internal to conformance_*cases.cc.

#ifndef LIB_SAFETENSORS_TESTING_CASE_BUILDER_H_
#define LIB_SAFETENSORS_TESTING_CASE_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/safetensors/testing/conformance_cases.h"

namespace firstframe::testing {

using Cases = std::vector<ConformanceCase>;

inline constexpr bool kReferenceAccepts = true;
inline constexpr bool kReferenceRefuses = false;

// One entry: F32 of shape [1] at [0, 4), with `text` in place of a part.
inline std::string Entry(absl::string_view part, absl::string_view text) {
  std::string entry =
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  return absl::StrReplaceAll(entry, {{part, text}});
}

inline std::string Repeat(absl::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) absl::StrAppend(&result, text);
  return result;
}

inline void Accept(Cases& cases, absl::string_view name, std::string bytes,
                   absl::string_view warning = "") {
  cases.push_back({std::string(name), std::move(bytes), kReferenceAccepts,
                   Verdict::kAccept, std::string(warning)});
}

inline void Refuse(Cases& cases, absl::string_view name, absl::string_view rule,
                   std::string bytes,
                   bool reference_accepts = kReferenceRefuses,
                   Verdict verdict = Verdict::kRefuse) {
  cases.push_back({std::string(name), std::move(bytes), reference_accepts,
                   verdict, std::string(rule)});
}

// A file whose JSON is `json` and whose data are 4 bytes.
inline void RefuseJson(Cases& cases, absl::string_view name,
                       absl::string_view rule, absl::string_view json) {
  Refuse(cases, name, rule, BuildSafetensors(json, 4));
}

// The cases about entries, their names and the metadata.
void AddEntryCases(Cases& cases);

}  // namespace firstframe::testing

#endif  // LIB_SAFETENSORS_TESTING_CASE_BUILDER_H_
