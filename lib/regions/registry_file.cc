#include "lib/regions/registry_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
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
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  FF_ASSIGN_OR_RETURN(std::vector<Region> regions,
                      ParseRegionTextproto(text, path));
  for (Region& region : regions) {
    FF_RETURN_IF_ERROR(Annotate(registry->Add(std::move(region)), path));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
