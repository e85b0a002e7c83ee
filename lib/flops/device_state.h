// What a board does while it computes, and what its driver says holds it back:
// a power limit below the board's own, heat, clocks that someone set.

#ifndef LIB_FLOPS_DEVICE_STATE_H_
#define LIB_FLOPS_DEVICE_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"

namespace firstframe {

// At one moment. What the driver does not tell (to a MIG slice, to a virtual
// machine) is absent.
struct DeviceState {
  std::optional<double> sm_clock_mhz;
  std::optional<double> max_sm_clock_mhz;
  std::optional<double> power_w;  // over about the last second
  std::optional<double> power_limit_w;
  std::optional<double> default_power_limit_w;
  std::optional<double> temperature_c;
  std::optional<bool> mig_enabled;
  uint64_t clock_reasons = 0;  // NVML's bits; see ClockReasonNames
};

// Names the set bits of NVML's clocks event reasons (nvml.h, CUDA 13.0):
// "power cap", "heat", ...; an idle device is not held back and has none.
std::vector<std::string> ClockReasonNames(uint64_t reasons);

// Reads the states of one device through NVML, which is opened at run time.
// Changes nothing on the device. Movable, thread-compatible.
class DeviceStateReader {
 public:
  // `pci_bus_id` as in cuda::DeviceProperties. Unavailable without NVML or
  // where it does not know the device.
  static absl::StatusOr<DeviceStateReader> Open(
      const std::string& pci_bus_id, const cuda::LibrarySearch& search);

  DeviceStateReader(DeviceStateReader&&) noexcept;
  ~DeviceStateReader();

  DeviceState Read() const;

 private:
  struct Nvml;
  DeviceStateReader(std::unique_ptr<Nvml> nvml, void* device);

  std::unique_ptr<Nvml> nvml_;
  void* device_;
};

}  // namespace firstframe

#endif  // LIB_FLOPS_DEVICE_STATE_H_
