#include "lib/profiler/device_properties.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

// CUdevice_attribute (cuda.h) by Kineto's key.
struct Attribute {
  const char* key;
  int number;
};
constexpr Attribute kAttributes[] = {
    {"computeMajor", 75},
    {"computeMinor", 76},
    {"maxThreadsPerBlock", 1},
    {"maxThreadsPerMultiprocessor", 39},
    {"regsPerBlock", 12},
    {"warpSize", 10},
    {"sharedMemPerBlock", 8},
    {"numSms", 16},
    {"regsPerMultiprocessor", 82},
    {"sharedMemPerBlockOptin", 97},
    {"sharedMemPerMultiprocessor", 81},
};

}  // namespace

std::string DevicePropertiesJson() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto find = [&](const char* name) {
    return driver == nullptr ? nullptr : ::dlsym(driver, name);
  };
  using GetCount = int (*)(int*);
  using GetDevice = int (*)(int*, int);
  using GetName = int (*)(char*, int, int);
  using GetMemory = int (*)(size_t*, int);
  using GetAttribute = int (*)(int*, int, int);
  const auto get_count = reinterpret_cast<GetCount>(find("cuDeviceGetCount"));
  const auto get_device = reinterpret_cast<GetDevice>(find("cuDeviceGet"));
  const auto get_name = reinterpret_cast<GetName>(find("cuDeviceGetName"));
  const auto get_memory =
      reinterpret_cast<GetMemory>(find("cuDeviceTotalMem_v2"));
  const auto get_attribute =
      reinterpret_cast<GetAttribute>(find("cuDeviceGetAttribute"));
  int count = 0;
  if (get_count == nullptr || get_device == nullptr || get_name == nullptr ||
      get_memory == nullptr || get_attribute == nullptr ||
      get_count(&count) != 0) {
    return "[]";
  }
  std::string text;
  JsonWriter json(&text);
  json.BeginArray();
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (get_device(&device, i) != 0) continue;
    char name[256] = {};
    size_t bytes = 0;
    get_name(name, sizeof(name), device);
    get_memory(&bytes, device);
    json.BeginObject();
    json.Key("id").Int(i);
    json.Key("name").String(name);
    json.Key("totalGlobalMem").Uint(bytes);
    for (const Attribute& attribute : kAttributes) {
      int value = 0;
      if (get_attribute(&value, attribute.number, device) != 0) continue;
      json.Key(attribute.key).Int(value);
    }
    json.EndObject();
  }
  json.EndArray();
  return text;
}

}  // namespace firstframe
