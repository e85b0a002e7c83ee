#include "lib/flops/device_state.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/known_libraries.h"

namespace firstframe {
namespace {

// From nvml.h, which the CUDA toolkit need not bring: nvmlReturn_t and the
// enumerations are ints, nvmlDevice_t is a pointer.
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;      // NVML_CLOCK_SM
constexpr int kTemperature = 0;  // NVML_TEMPERATURE_GPU

using Init = int();
using FindDevice = int(const char* pci_bus_id, void** device);
using ReadUnsigned = int(void* device, unsigned* value);
using ReadOfKind = int(void* device, int kind, unsigned* value);
using ReadPair = int(void* device, unsigned* current, unsigned* pending);
using ReadBits = int(void* device, unsigned long long* value);

}  // namespace

// Functions that an old driver lacks are null.
struct DeviceStateReader::Nvml {
  Init* init = nullptr;
  Init* shutdown = nullptr;
  FindDevice* find = nullptr;
  ReadOfKind* clock = nullptr;
  ReadOfKind* max_clock = nullptr;
  ReadOfKind* temperature = nullptr;
  ReadUnsigned* power = nullptr;
  ReadUnsigned* power_limit = nullptr;
  ReadUnsigned* default_power_limit = nullptr;
  ReadPair* mig_mode = nullptr;
  ReadBits* clock_reasons = nullptr;
};

namespace {

template <typename Function>
Function* FindOrNull(const cuda::DynamicLibrary& library, const char* name) {
  return library.Find<Function>(name).value_or(nullptr);
}

std::optional<double> Scaled(ReadUnsigned* read, void* device, double scale) {
  unsigned value = 0;
  if (read == nullptr || read(device, &value) != kSuccess) return std::nullopt;
  return value * scale;
}

std::optional<double> OfKind(ReadOfKind* read, void* device, int kind) {
  unsigned value = 0;
  if (read == nullptr || read(device, kind, &value) != kSuccess) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::vector<std::string> ClockReasonNames(uint64_t reasons) {
  // nvmlClocksEventReason*, less idle (1).
  constexpr std::pair<uint64_t, const char*> kNames[] = {
      {0x2, "application clocks"}, {0x4, "power cap"},
      {0x8, "hardware slowdown"},  {0x10, "sync boost"},
      {0x20, "heat (software)"},   {0x40, "heat (hardware)"},
      {0x80, "power brake"},       {0x100, "display clocks"},
  };
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames) {
    if ((reasons & bit) != 0) names.push_back(name);
    reasons &= ~bit;
  }
  reasons &= ~uint64_t{1};
  if (reasons != 0) {
    names.push_back(absl::StrCat("reason 0x", absl::Hex(reasons)));
  }
  return names;
}

DeviceStateReader::DeviceStateReader(std::unique_ptr<Nvml> nvml, void* device)
    : nvml_(std::move(nvml)), device_(device) {}
DeviceStateReader::DeviceStateReader(DeviceStateReader&&) noexcept = default;
DeviceStateReader::~DeviceStateReader() {
  if (nvml_ != nullptr && nvml_->shutdown != nullptr) nvml_->shutdown();
}

absl::StatusOr<DeviceStateReader> DeviceStateReader::Open(
    const std::string& pci_bus_id, const cuda::LibrarySearch& search) {
  FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                      cuda::DynamicLibrary::Open(cuda::kNvml, search));
  auto nvml = std::make_unique<Nvml>();
  FF_ASSIGN_OR_RETURN(nvml->init, library.Find<Init>("nvmlInit_v2"));
  FF_ASSIGN_OR_RETURN(
      nvml->find, library.Find<FindDevice>("nvmlDeviceGetHandleByPciBusId_v2"));
  nvml->clock = FindOrNull<ReadOfKind>(library, "nvmlDeviceGetClockInfo");
  nvml->max_clock =
      FindOrNull<ReadOfKind>(library, "nvmlDeviceGetMaxClockInfo");
  nvml->temperature =
      FindOrNull<ReadOfKind>(library, "nvmlDeviceGetTemperature");
  nvml->power = FindOrNull<ReadUnsigned>(library, "nvmlDeviceGetPowerUsage");
  nvml->power_limit =
      FindOrNull<ReadUnsigned>(library, "nvmlDeviceGetEnforcedPowerLimit");
  nvml->default_power_limit = FindOrNull<ReadUnsigned>(
      library, "nvmlDeviceGetPowerManagementDefaultLimit");
  nvml->mig_mode = FindOrNull<ReadPair>(library, "nvmlDeviceGetMigMode");
  // Renamed in driver 535; the old name stays.
  nvml->clock_reasons = FindOrNull<ReadBits>(
      library, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (const int code = nvml->init(); code != kSuccess) {
    return absl::UnavailableError(
        absl::StrCat("NVML did not start: status ", code));
  }
  nvml->shutdown = FindOrNull<Init>(library, "nvmlShutdown");
  DeviceStateReader reader(std::move(nvml), nullptr);
  const int code = reader.nvml_->find(pci_bus_id.c_str(), &reader.device_);
  if (code != kSuccess) {
    return absl::UnavailableError(absl::StrCat("NVML does not know the device ",
                                               pci_bus_id, ": status ", code));
  }
  return reader;
}

DeviceState DeviceStateReader::Read() const {
  constexpr double kWattsAMilliwatt = 1e-3;
  DeviceState state;
  state.sm_clock_mhz = OfKind(nvml_->clock, device_, kSmClock);
  state.max_sm_clock_mhz = OfKind(nvml_->max_clock, device_, kSmClock);
  state.temperature_c = OfKind(nvml_->temperature, device_, kTemperature);
  state.power_w = Scaled(nvml_->power, device_, kWattsAMilliwatt);
  state.power_limit_w = Scaled(nvml_->power_limit, device_, kWattsAMilliwatt);
  state.default_power_limit_w =
      Scaled(nvml_->default_power_limit, device_, kWattsAMilliwatt);
  unsigned current = 0;
  unsigned pending = 0;
  if (nvml_->mig_mode != nullptr &&
      nvml_->mig_mode(device_, &current, &pending) == kSuccess) {
    state.mig_enabled = current != 0;
  }
  unsigned long long reasons = 0;
  if (nvml_->clock_reasons != nullptr &&
      nvml_->clock_reasons(device_, &reasons) == kSuccess) {
    state.clock_reasons = reasons;
  }
  return state;
}

}  // namespace firstframe
