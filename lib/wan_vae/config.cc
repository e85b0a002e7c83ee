#include "lib/wan_vae/config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/edit_distance.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr absl::string_view kClassName = "AutoencoderKLWan";

// Far above any published model; keeps every size in this library within int64.
constexpr int64_t kMaxChannels = 1 << 16;
constexpr int64_t kMaxLevels = 8;
constexpr int64_t kMaxResBlocks = 64;

std::string Show(element value) {
  std::string text(simdjson::minify(value));
  constexpr size_t kLongest = 80;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

absl::Status Unexpected(absl::string_view field, absl::string_view found,
                        absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", found, ", expected ", expected));
}

absl::StatusOr<int64_t> ReadInt(absl::string_view field, element value) {
  int64_t result;
  if (value.get(result)) {
    return Unexpected(field, Show(value), "an integer");
  }
  return result;
}

absl::StatusOr<double> ReadDouble(absl::string_view field, element value) {
  double result;
  if (value.get(result)) return Unexpected(field, Show(value), "a number");
  return result;
}

absl::StatusOr<bool> ReadBool(absl::string_view field, element value) {
  bool result;
  if (value.get(result)) return Unexpected(field, Show(value), "true or false");
  return result;
}

template <typename T, typename ReadOne>
absl::StatusOr<std::vector<T>> ReadList(absl::string_view field, element value,
                                        const ReadOne& read_one) {
  simdjson::dom::array array;
  if (value.get(array)) return Unexpected(field, Show(value), "a list");
  std::vector<T> result;
  for (element item : array) {
    FF_ASSIGN_OR_RETURN(T one,
                        read_one(absl::StrCat("an entry of ", field), item));
    result.push_back(one);
  }
  return result;
}

// What config.json holds beyond WanVaeConfig, to be checked against it.
struct RawExtras {
  std::optional<int64_t> decoder_base_dim;
  std::optional<int64_t> scale_factor_temporal;
  std::optional<int64_t> scale_factor_spatial;
};

absl::StatusOr<std::optional<int64_t>> ReadOptionalInt(absl::string_view field,
                                                       element value) {
  if (value.is_null()) return std::optional<int64_t>();
  FF_ASSIGN_OR_RETURN(const int64_t result, ReadInt(field, value));
  return std::optional<int64_t>(result);
}

absl::Status CheckAttnScales(element value) {
  simdjson::dom::array array;
  if (value.get(array) || array.size() != 0) {
    return Unexpected("attn_scales", Show(value),
                      "[] (attention inside the levels is not supported; "
                      "diffusers' own encoder cannot run it)");
  }
  return absl::OkStatus();
}

absl::Status CheckPatchSize(element value) {
  int64_t size = 0;
  if (value.is_null() || (!value.get(size) && size == 1)) {
    return absl::OkStatus();
  }
  return Unexpected("patch_size", Show(value),
                    "null or 1 (the Wan 2.2 VAE is not supported)");
}

const std::vector<std::string>& KnownFields() {
  static const auto* const fields =
      new std::vector<std::string>{"attn_scales",
                                   "base_dim",
                                   "decoder_base_dim",
                                   "dim_mult",
                                   "dropout",
                                   "in_channels",
                                   "is_residual",
                                   "latents_mean",
                                   "latents_std",
                                   "num_res_blocks",
                                   "out_channels",
                                   "patch_size",
                                   "scale_factor_spatial",
                                   "scale_factor_temporal",
                                   "temperal_downsample",
                                   "z_dim"};
  return *fields;
}

absl::Status UnknownField(absl::string_view key, element value) {
  const std::optional<std::string> near = NearestName(key, KnownFields());
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown field '", key, "' (", Show(value), ")",
      near ? absl::StrCat(", did you mean '", *near, "'?") : std::string()));
}

absl::Status ReadField(absl::string_view key, element value,
                       WanVaeConfig& config, RawExtras& extras) {
  const auto read_int = [&](int64_t& out) -> absl::Status {
    FF_ASSIGN_OR_RETURN(out, ReadInt(key, value));
    return absl::OkStatus();
  };
  const auto read_doubles = [&](std::vector<double>& out) -> absl::Status {
    FF_ASSIGN_OR_RETURN(out, ReadList<double>(key, value, ReadDouble));
    return absl::OkStatus();
  };
  const auto read_optional = [&](std::optional<int64_t>& out) -> absl::Status {
    FF_ASSIGN_OR_RETURN(out, ReadOptionalInt(key, value));
    return absl::OkStatus();
  };
  if (key == "attn_scales") return CheckAttnScales(value);
  if (key == "patch_size") return CheckPatchSize(value);
  if (key == "base_dim") return read_int(config.base_dim);
  if (key == "z_dim") return read_int(config.z_dim);
  if (key == "num_res_blocks") return read_int(config.num_res_blocks);
  if (key == "in_channels") return read_int(config.in_channels);
  if (key == "out_channels") return read_int(config.out_channels);
  if (key == "decoder_base_dim") return read_optional(extras.decoder_base_dim);
  if (key == "scale_factor_temporal") {
    return read_optional(extras.scale_factor_temporal);
  }
  if (key == "scale_factor_spatial") {
    return read_optional(extras.scale_factor_spatial);
  }
  if (key == "latents_mean") return read_doubles(config.latents_mean);
  if (key == "latents_std") return read_doubles(config.latents_std);
  if (key == "dim_mult") {
    FF_ASSIGN_OR_RETURN(config.dim_mult,
                        ReadList<int64_t>(key, value, ReadInt));
    return absl::OkStatus();
  }
  if (key == "temperal_downsample") {
    FF_ASSIGN_OR_RETURN(config.temporal_downsample,
                        ReadList<bool>(key, value, ReadBool));
    return absl::OkStatus();
  }
  if (key == "dropout") {
    FF_ASSIGN_OR_RETURN(config.dropout, ReadDouble(key, value));
    return absl::OkStatus();
  }
  if (key == "is_residual") {
    FF_ASSIGN_OR_RETURN(const bool is_residual, ReadBool(key, value));
    if (!is_residual) return absl::OkStatus();
    return Unexpected(key, "true", "false (the Wan 2.2 VAE is not supported)");
  }
  return UnknownField(key, value);
}

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Unexpected(field, absl::StrCat(value),
                    absl::StrCat(least, " to ", most));
}

absl::Status CheckScaleFactor(absl::string_view field,
                              std::optional<int64_t> found, int64_t expected,
                              absl::string_view cause) {
  if (!found || *found == expected) return absl::OkStatus();
  return Unexpected(field, absl::StrCat(*found),
                    absl::StrCat(expected, ", which ", cause, " gives"));
}

absl::Status CheckLatentStatistics(const WanVaeConfig& config) {
  const auto check = [&](absl::string_view field,
                         const std::vector<double>& list,
                         bool positive) -> absl::Status {
    if (static_cast<int64_t>(list.size()) != config.z_dim) {
      return Unexpected(field, absl::StrCat("a list of ", list.size()),
                        absl::StrCat("one number for each of z_dim = ",
                                     config.z_dim, " channels"));
    }
    for (double value : list) {
      if (!std::isfinite(value) || (positive && value <= 0)) {
        return Unexpected(absl::StrCat("an entry of ", field),
                          absl::StrCat(value),
                          positive ? "a positive number" : "a finite number");
      }
    }
    return absl::OkStatus();
  };
  FF_RETURN_IF_ERROR(check("latents_mean", config.latents_mean, false));
  return check("latents_std", config.latents_std, true);
}

absl::StatusOr<WanVaeConfig> Parse(absl::string_view json) {
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON: ", simdjson::error_message(error)));
  }
  simdjson::dom::object object;
  if (root.get(object)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the document is ", Show(root), ", expected an object"));
  }
  WanVaeConfig config;
  RawExtras extras;
  std::set<std::string> seen;
  for (const auto& field : object) {
    const absl::string_view key(field.key.data(), field.key.size());
    if (!seen.insert(std::string(key)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", key, "' is given twice"));
    }
    if (key == "_class_name") {
      std::string_view name;
      if (field.value.get(name) ||
          absl::string_view(name.data(), name.size()) != kClassName) {
        return Unexpected(key, Show(field.value),
                          absl::StrCat("\"", kClassName, "\""));
      }
      continue;
    }
    if (absl::StartsWith(key, "_")) continue;
    FF_RETURN_IF_ERROR(ReadField(key, field.value, config, extras));
  }
  config.decoder_base_dim = extras.decoder_base_dim.value_or(config.base_dim);
  FF_RETURN_IF_ERROR(ValidateWanVaeConfig(config));
  FF_RETURN_IF_ERROR(CheckScaleFactor("scale_factor_spatial",
                                      extras.scale_factor_spatial,
                                      config.SpatialFactor(), "dim_mult"));
  FF_RETURN_IF_ERROR(
      CheckScaleFactor("scale_factor_temporal", extras.scale_factor_temporal,
                       config.TemporalFactor(), "temperal_downsample"));
  return config;
}

}  // namespace

int64_t WanVaeConfig::SpatialFactor() const {
  return int64_t{1} << (dim_mult.size() - 1);
}

int64_t WanVaeConfig::TemporalFactor() const {
  return int64_t{1} << std::count(temporal_downsample.begin(),
                                  temporal_downsample.end(), true);
}

std::vector<double> WanVaeConfig::DefaultLatentsMean() {
  return {-0.7571, -0.7089, -0.9113, 0.1075,  -0.1745, 0.9653,
          -0.1517, 1.5508,  0.4134,  -0.0715, 0.5517,  -0.3632,
          -0.1922, -0.9497, 0.2503,  -0.2921};
}

std::vector<double> WanVaeConfig::DefaultLatentsStd() {
  return {2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
          3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160};
}

absl::Status ValidateWanVaeConfig(const WanVaeConfig& config) {
  // base_dim / 2 channels come out of the last upsampler.
  FF_RETURN_IF_ERROR(CheckRange("base_dim", config.base_dim, 1, kMaxChannels));
  FF_RETURN_IF_ERROR(
      CheckRange("decoder_base_dim", config.decoder_base_dim, 2, kMaxChannels));
  FF_RETURN_IF_ERROR(CheckRange("z_dim", config.z_dim, 1, kMaxChannels));
  FF_RETURN_IF_ERROR(
      CheckRange("in_channels", config.in_channels, 1, kMaxChannels));
  FF_RETURN_IF_ERROR(
      CheckRange("out_channels", config.out_channels, 1, kMaxChannels));
  FF_RETURN_IF_ERROR(
      CheckRange("num_res_blocks", config.num_res_blocks, 1, kMaxResBlocks));
  FF_RETURN_IF_ERROR(CheckRange("the length of dim_mult",
                                config.dim_mult.size(), 1, kMaxLevels));
  const int64_t widest = std::max(config.base_dim, config.decoder_base_dim);
  for (int64_t mult : config.dim_mult) {
    FF_RETURN_IF_ERROR(
        CheckRange("an entry of dim_mult", mult, 1, kMaxChannels / widest));
  }
  if (config.temporal_downsample.size() != config.dim_mult.size() - 1) {
    return Unexpected(
        "temperal_downsample",
        absl::StrCat("a list of ", config.temporal_downsample.size()),
        absl::StrCat("one entry fewer than dim_mult has, ",
                     config.dim_mult.size() - 1));
  }
  if (!(config.dropout >= 0 && config.dropout <= 1)) {
    return Unexpected("dropout", absl::StrCat(config.dropout), "0 to 1");
  }
  return CheckLatentStatistics(config);
}

absl::StatusOr<WanVaeConfig> ParseWanVaeConfig(absl::string_view json,
                                               absl::string_view source) {
  absl::StatusOr<WanVaeConfig> config = Parse(json);
  if (!config.ok()) return Annotate(config.status(), source);
  return config;
}

absl::StatusOr<WanVaeConfig> WanVaePreset(absl::string_view name) {
  WanVaeConfig config;
  if (name == "wan21") return config;
  if (name == "small") {
    config.base_dim = config.decoder_base_dim = 16;
    return config;
  }
  if (name == "tiny") {
    config.base_dim = config.decoder_base_dim = 3;
    config.dim_mult = {1, 1, 1, 1};
    config.num_res_blocks = 1;
    return config;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "configuration '", name, "', expected tiny, small or wan21"));
}

std::string WanVaeConfigToJson(const WanVaeConfig& config) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  const auto doubles = [&](absl::string_view key,
                           const std::vector<double>& list) {
    json.Key(key).BeginArray();
    for (double value : list) json.Double(value);
    json.EndArray();
  };
  json.BeginObject();
  json.Key("_class_name").String(kClassName);
  json.Key("attn_scales").BeginArray().EndArray();
  json.Key("base_dim").Int(config.base_dim);
  json.Key("decoder_base_dim");
  if (config.decoder_base_dim == config.base_dim) {
    json.Null();
  } else {
    json.Int(config.decoder_base_dim);
  }
  json.Key("dim_mult").BeginArray();
  for (int64_t mult : config.dim_mult) json.Int(mult);
  json.EndArray();
  json.Key("dropout").Double(config.dropout);
  json.Key("in_channels").Int(config.in_channels);
  json.Key("is_residual").Bool(false);
  doubles("latents_mean", config.latents_mean);
  doubles("latents_std", config.latents_std);
  json.Key("num_res_blocks").Int(config.num_res_blocks);
  json.Key("out_channels").Int(config.out_channels);
  json.Key("patch_size").Null();
  json.Key("scale_factor_spatial").Int(config.SpatialFactor());
  json.Key("scale_factor_temporal").Int(config.TemporalFactor());
  json.Key("temperal_downsample").BeginArray();
  for (bool down : config.temporal_downsample) json.Bool(down);
  json.EndArray();
  json.Key("z_dim").Int(config.z_dim);
  json.EndObject();
  text.push_back('\n');
  return text;
}

}  // namespace firstframe
