#include "lib/host/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/host/cpu_budget.h"

namespace firstframe {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the value of the first line "key<separator>value", trimmed.
std::string ValueOf(absl::string_view text, absl::string_view key,
                    char separator) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(separator, 1));
    if (absl::StripAsciiWhitespace(parts.first) != key) continue;
    absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    absl::ConsumePrefix(&value, "\"");
    absl::ConsumeSuffix(&value, "\"");
    return std::string(value);
  }
  return "";
}

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return CPU_COUNT(&set);
}

}  // namespace

Machine ReadMachine(const std::string& root) {
  Machine machine;
  const std::string cpu_info = ReadText(root + "/proc/cpuinfo");
  machine.cpu_model = ValueOf(cpu_info, "model name", ':');
  machine.is_virtual = absl::StrContains(
      absl::StrCat(" ", ValueOf(cpu_info, "flags", ':'), " "), " hypervisor ");
  machine.operating_system =
      ValueOf(ReadText(root + "/etc/os-release"), "PRETTY_NAME", '=');
  utsname names = {};
  if (::uname(&names) == 0) machine.kernel = names.release;
  machine.logical_cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.usable_cpus = UsableCpus();
  machine.cgroup_cpus = CgroupCpuQuota(root);
  int64_t kib = 0;
  const std::string total =
      ValueOf(ReadText(root + "/proc/meminfo"), "MemTotal", ':');
  if (absl::SimpleAtoi(absl::StripSuffix(total, " kB"), &kib)) {
    machine.memory_bytes = kib * 1024;
  }
  machine.governor = std::string(absl::StripAsciiWhitespace(ReadText(
      root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
  return machine;
}

void WriteJson(const Machine& machine, JsonWriter& json) {
  json.BeginObject();
  json.Key("operating_system").StringOrNull(machine.operating_system);
  json.Key("kernel").StringOrNull(machine.kernel);
  json.Key("cpu_model").StringOrNull(machine.cpu_model);
  json.Key("logical_cpus").Int(machine.logical_cpus);
  json.Key("usable_cpus").Int(machine.usable_cpus);
  json.Key("cgroup_cpus");
  if (machine.cgroup_cpus > 0) {
    json.Double(machine.cgroup_cpus);
  } else {
    json.Null();
  }
  json.Key("memory_bytes").Int(machine.memory_bytes);
  json.Key("cpu_frequency_governor").StringOrNull(machine.governor);
  json.Key("is_virtual").Bool(machine.is_virtual);
  json.EndObject();
}

}  // namespace firstframe
