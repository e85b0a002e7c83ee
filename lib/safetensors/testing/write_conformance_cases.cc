// Writes every conformance case into a folder, for tests of tools and for
// comparing the verdicts with other readers:
//
//   write_conformance_cases DIR
//
// DIR/NAME.safetensors per case, and DIR/cases.tsv with name, what the
// reference does, the verdict and the rule.

#include <fstream>
#include <iostream>

#include "lib/safetensors/testing/conformance_cases.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_conformance_cases DIR\n";
    return 2;
  }
  const std::string dir = argv[1];
  std::ofstream table(dir + "/cases.tsv");
  for (const auto& each : firstframe::testing::ConformanceCases()) {
    std::ofstream file(dir + "/" + each.name + ".safetensors",
                       std::ios::binary);
    file.write(each.bytes.data(), each.bytes.size());
    constexpr const char* kVerdicts[] = {"accept", "lenient", "refuse"};
    table << each.name << '\t' << (each.reference_accepts ? "accept" : "refuse")
          << '\t' << kVerdicts[static_cast<int>(each.verdict)] << '\t'
          << (each.rule.empty() ? "-" : each.rule) << '\n';
    if (!file.flush()) return 2;
  }
  return table.flush() ? 0 : 2;
}
