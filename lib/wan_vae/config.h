// The configuration of a Wan video VAE: diffusers' AutoencoderKLWan, as its
// config.json describes it.
//
// Every field of config.json is honoured, or refused with its name and value:
//   attn_scales      only []: diffusers' own encoder cannot run another
//   is_residual      only false: true is the Wan 2.2 VAE, not implemented
//   patch_size       only null or 1: others belong to the Wan 2.2 VAE
//   scale_factor_*   null, or the factor that dim_mult and temperal_downsample
//   give dropout          read and checked; decoding and encoding are inference
// Keys that begin with '_' (_class_name, _diffusers_version) are diffusers' own
// notes; a _class_name of another model is refused. Unknown keys are refused.
//
// Source: huggingface/diffusers, models/autoencoders/autoencoder_kl_wan.py,
// read 2026-11.

#ifndef LIB_WAN_VAE_CONFIG_H_
#define LIB_WAN_VAE_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// The defaults are the Wan 2.1 VAE.
struct WanVaeConfig {
  int64_t base_dim = 96;          // channels of the encoder's first level
  int64_t decoder_base_dim = 96;  // of the decoder's last level
  int64_t z_dim = 16;             // latent channels
  std::vector<int64_t> dim_mult = {1, 2, 4, 4};
  int64_t num_res_blocks = 2;
  // One entry between two levels: does the encoder halve the frames there? (The
  // key in config.json is spelt "temperal_downsample".)
  std::vector<bool> temporal_downsample = {false, true, true};
  double dropout = 0.0;
  std::vector<double> latents_mean = DefaultLatentsMean();  // [z_dim]
  std::vector<double> latents_std = DefaultLatentsStd();    // [z_dim]
  int64_t in_channels = 3;
  int64_t out_channels = 3;

  // Returns samples per latent along each axis: 2 a level, and 2 a temporal
  // one.
  int64_t SpatialFactor() const;
  int64_t TemporalFactor() const;

  bool operator==(const WanVaeConfig&) const = default;

  static std::vector<double> DefaultLatentsMean();
  static std::vector<double> DefaultLatentsStd();
};

// Reads the text of a config.json; absent keys take diffusers' defaults. Errors
// are InvalidArgument, name the field, what was found and what is supported,
// and begin with `source`.
absl::StatusOr<WanVaeConfig> ParseWanVaeConfig(absl::string_view json,
                                               absl::string_view source);

// Returns the configuration called "tiny" (13,861 parameters), "small" (3.6 M)
// or "wan21" (126.9 M, the published model). InvalidArgument for other names.
absl::StatusOr<WanVaeConfig> WanVaePreset(absl::string_view name);

// Returns the config.json of `config`, keys in diffusers' order.
std::string WanVaeConfigToJson(const WanVaeConfig& config);

// Returns why `config` cannot be run, or OK. Both functions above call it.
absl::Status ValidateWanVaeConfig(const WanVaeConfig& config);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CONFIG_H_
