// The CUDA devices of this process, as Kineto describes them.

#ifndef LIB_PROFILER_DEVICE_PROPERTIES_H_
#define LIB_PROFILER_DEVICE_PROPERTIES_H_

#include <string>

namespace firstframe {

// Returns a JSON array, one object a device: id, name, totalGlobalMem,
// computeMajor, computeMinor, numSms and limits, with Kineto's keys. Asks the
// driver that the process has loaded; "[]" when it has none. Thread-safe;
// creates no context.
std::string DevicePropertiesJson();

}  // namespace firstframe

#endif  // LIB_PROFILER_DEVICE_PROPERTIES_H_
