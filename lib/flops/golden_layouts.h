// Test data of testdata/flops.

#ifndef LIB_FLOPS_GOLDEN_LAYOUTS_H_
#define LIB_FLOPS_GOLDEN_LAYOUTS_H_

#include <map>
#include <string>

#include "lib/flops/model_layout.h"
#include "simdjson.h"

namespace firstframe::testing {

// Parses testdata/flops/NAME; the parser must outlive the result. Stops the
// process when it cannot.
simdjson::dom::object LoadFlopsGolden(const std::string& name,
                                      simdjson::dom::parser& parser);

// The tensor layouts of the ten models, by name.
std::map<std::string, ModelLayout> LoadGoldenLayouts();

}  // namespace firstframe::testing

#endif  // LIB_FLOPS_GOLDEN_LAYOUTS_H_
