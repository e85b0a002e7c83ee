// Turns a region registry (textproto) into a C++ table at build time.
//
// Usage: registry_codegen INPUT.textproto > builtin_regions.cc

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "lib/regions/region_textproto.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "registry_codegen: expected one textproto\n";
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  const auto regions = firstframe::ParseRegionTextproto(text, argv[1]);
  if (!regions.ok()) {
    std::cerr << "registry_codegen: " << regions.status().message() << "\n";
    return 2;
  }
  const auto quoted = [](const std::string& value) {
    return "\"" + absl::CEscape(value) + "\"";
  };
  std::cout << "// Generated from " << argv[1] << ".\n"
            << "#include \"lib/regions/builtin_regions.h\"\n\n"
            << "namespace firstframe {\n\n"
            << "const BuiltinRegion kBuiltinRegions[] = {\n";
  for (const firstframe::Region& region : *regions) {
    std::cout << "    {" << quoted(region.name) << ", "
              << quoted(region.description) << ", " << quoted(region.owner)
              << ", " << quoted(region.since) << ", "
              << quoted(absl::StrJoin(region.aliases, ",")) << ", "
              << quoted(region.deprecated) << "},\n";
  }
  std::cout << "};\nconst size_t kBuiltinRegionCount = " << regions->size()
            << ";\n\n}  // namespace firstframe\n";
  return std::cout.flush().good() ? 0 : 2;
}
