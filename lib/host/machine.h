// The machine a measurement ran on, for the context block of every report.

#ifndef LIB_HOST_MACHINE_H_
#define LIB_HOST_MACHINE_H_

#include <cstdint>
#include <string>

#include "lib/base/json_writer.h"

namespace firstframe {

struct Machine {
  std::string operating_system;  // PRETTY_NAME of /etc/os-release
  std::string kernel;            // "6.1.0-18-amd64"
  std::string cpu_model;         // "AMD EPYC 9554 64-Core Processor"
  int logical_cpus = 0;          // online
  int usable_cpus = 0;           // that this process may run on
  // CPUs' worth of time that the cgroup grants; 0 when unlimited or unknown.
  double cgroup_cpus = 0;
  int64_t memory_bytes = 0;  // MemTotal
  std::string governor;      // CPU frequency governor; empty when unknown
  bool is_virtual = false;   // the CPU says that a hypervisor runs it
};

// Reads /proc, /sys and uname(2). Never fails: what cannot be read stays empty.
// `root` is put in front of the files' paths (tests).
Machine ReadMachine(const std::string& root = "");

// Writes the members as one JSON object; unknown ones are null.
void WriteJson(const Machine& machine, JsonWriter& json);

}  // namespace firstframe

#endif  // LIB_HOST_MACHINE_H_
