// A profiler region and its names.
//
// A region has one short name ("inference_denoising"). Its long form puts
// "profiler_region_" in front; FastVideo's settings accept either, and so does
// everything here. Spans always carry the short form, so that a region recorded
// under both spellings is one region in a trace:
//
//   fastvideo.region::inference_denoising

#ifndef LIB_REGIONS_REGION_H_
#define LIB_REGIONS_REGION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe {

inline constexpr absl::string_view kRegionLongPrefix = "profiler_region_";
inline constexpr absl::string_view kRegionSpanPrefix = "fastvideo.region::";

struct Region {
  std::string name = {};  // short form
  std::string description = {};
  std::string owner = {};
  std::string since = {};  // the version that brought it
  std::vector<std::string> aliases = {};
  std::string deprecated = {};  // why not to use it; empty: in use
};

// Trims, lower-cases ASCII, and drops the span prefix and the long prefix: the
// short form of any spelling of a region's name.
std::string ShortRegionName(absl::string_view spelling);

// Returns "fastvideo.region::" and the short form.
std::string RegionSpanName(absl::string_view spelling);

// InvalidArgument unless `name` is a lower-case short form: not empty, no
// upper-case ASCII, white space, control character, comma, or character with a
// meaning in a selection (* ? [ ] ! leading '-'). UTF-8 beyond ASCII is
// welcome.
absl::Status ValidateRegionName(absl::string_view name);

}  // namespace firstframe

#endif  // LIB_REGIONS_REGION_H_
