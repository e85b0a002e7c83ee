#include "lib/startup/latents.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "lib/base/status_macros.h"
#include "lib/startup/tensor_file.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

// More than this is a mistake, or more than any machine holds.
constexpr int64_t kMaxElements = int64_t{1} << 34;

absl::Status CheckShape(const WanVaeConfig& config, const Shape& shape,
                        absl::string_view where) {
  const std::optional<int64_t> count = CheckedNumElements(shape);
  if (shape.size() == 5 && shape[1] == config.z_dim && count && *count > 0 &&
      *count <= kMaxElements) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": latent shape ", ShapeToString(shape), "; expected [batch, ",
      config.z_dim, ", frames, height, width], all positive"));
}

}  // namespace

absl::StatusOr<Shape> LatentShapeOfVideo(const WanVaeConfig& config,
                                         int64_t frames, int64_t height,
                                         int64_t width) {
  const int64_t temporal = config.TemporalFactor();
  const int64_t spatial = config.SpatialFactor();
  if (frames < 1 || (frames - 1) % temporal != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        frames, " frames; expected 1 + k * ", temporal, ", such as ",
        1 + temporal * std::max<int64_t>(1, frames / temporal)));
  }
  if (height < 1 || width < 1 || height % spatial != 0 ||
      width % spatial != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        height, " x ", width, " pixels; expected multiples of ", spatial));
  }
  Shape shape = {1, config.z_dim, 1 + (frames - 1) / temporal, height / spatial,
                 width / spatial};
  FF_RETURN_IF_ERROR(CheckShape(config, shape, "video size"));
  return shape;
}

absl::StatusOr<Shape> ParseLatentShape(const WanVaeConfig& config,
                                       absl::string_view text) {
  Shape shape;
  for (const absl::string_view part :
       absl::StrSplit(text, absl::ByAnyChar("x,"))) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("latent shape '", text, "': '", part,
                       "' is no number; expected such as 1x16x3x60x104"));
    }
    shape.push_back(size);
  }
  FF_RETURN_IF_ERROR(CheckShape(config, shape, absl::StrCat("'", text, "'")));
  return shape;
}

FloatTensor SeededLatents(const Shape& shape, uint64_t seed) {
  FloatTensor latents = {.shape = shape};
  latents.values.resize(*CheckedNumElements(shape));
  const std::string name = seed == 0 ? "latent" : absl::StrCat("latent.", seed);
  FillSynthetic(name, shape, 0, absl::MakeSpan(latents.values));
  return latents;
}

absl::StatusOr<FloatTensor> ReadLatents(const WanVaeConfig& config,
                                        const std::string& path) {
  FF_ASSIGN_OR_RETURN(FloatTensor latents, ReadTensorFile(path, "latent"));
  FF_RETURN_IF_ERROR(CheckShape(config, latents.shape, path));
  return latents;
}

}  // namespace firstframe
