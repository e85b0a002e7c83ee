#include "lib/metrics/vae_perf.h"

namespace firstframe {

WanVaeCostConfig ToCostConfig(const WanVaeConfig& config) {
  WanVaeCostConfig cost;
  cost.base_dim = config.base_dim;
  cost.decoder_base_dim = config.decoder_base_dim;
  cost.z_dim = config.z_dim;
  cost.dim_mult = config.dim_mult;
  cost.num_res_blocks = config.num_res_blocks;
  cost.temporal_downsample = config.temporal_downsample;
  cost.in_channels = config.in_channels;
  cost.out_channels = config.out_channels;
  return cost;
}

std::unique_ptr<VaePerf> VaePerf::Create(const PerfSettings& settings,
                                         std::ostream* log,
                                         const VaePerfOptions& options) {
  return std::unique_ptr<VaePerf>(new VaePerf(settings, log, options));
}

VaePerf::VaePerf(const PerfSettings& settings, std::ostream* log,
                 const VaePerfOptions& options)
    : stage_(options.stage),
      sink_(settings, log),
      markers_(MonotonicClock::Get(), options.device),
      memory_(
          options.device.runtime == nullptr
              ? nullptr
              : std::make_unique<SampledDeviceMemory>(*options.device.runtime)),
      recorder_(sink_, markers_, memory_.get()) {
  if (options.flops > 0) recorder_.SetVae(options.stage, options.flops);
  if (options.peak_tflops) {
    recorder_.SetPeakTflops(*options.peak_tflops);
    return;
  }
  const auto device = FindDevicePeak(BuiltinDevicePeaks(), options.device_name);
  if (!device.ok()) return;
  const auto rate = PeakTflops(*device, options.math);
  if (rate.ok()) recorder_.SetPeakTflops(*rate);
}

}  // namespace firstframe
