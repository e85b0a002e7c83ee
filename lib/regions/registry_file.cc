#include "lib/regions/registry_file.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/regions/region_textproto.h"

namespace firstframe {

absl::Status AddRegionsFromFile(const std::string& path,
                                RegionRegistry* registry) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  }
  // read() notes a failure (a folder, say); stream iterators would throw.
  std::string text;
  char block[4096];
  while (file.read(block, sizeof(block)) || file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": cannot read: expected a file, not a folder or a "
                     "device"));
  }
  FF_ASSIGN_OR_RETURN(std::vector<Region> regions,
                      ParseRegionTextproto(text, path));
  for (Region& region : regions) {
    FF_RETURN_IF_ERROR(Annotate(registry->Add(std::move(region)), path));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
