#include "lib/host/machine.h"

#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::TempDir;

TEST(Machine, ReadsWhatTheKernelSays) {
  TempDir root;
  root.Write("proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Acme 9000\n"
             "flags\t\t: fpu hypervisor avx2\n\nprocessor\t: 1\n");
  root.Write("proc/meminfo", "MemTotal:       24576 kB\nMemFree: 1 kB\n");
  root.Write("etc/os-release", "NAME=X\nPRETTY_NAME=\"Debian 12\"\n");
  root.Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  root.Write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
             "powersave\n");
  const Machine machine = ReadMachine(root.path());
  EXPECT_EQ(machine.cpu_model, "Acme 9000");
  EXPECT_EQ(machine.operating_system, "Debian 12");
  EXPECT_EQ(machine.memory_bytes, 24576 * 1024);
  EXPECT_EQ(machine.cgroup_cpus, 1.5);
  EXPECT_EQ(machine.governor, "powersave");
  EXPECT_TRUE(machine.is_virtual);
  EXPECT_GT(machine.usable_cpus, 0);
  EXPECT_GE(machine.logical_cpus, machine.usable_cpus);
  EXPECT_FALSE(machine.kernel.empty());
}

TEST(Machine, UnknownIsNull) {
  TempDir root;
  root.Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  const Machine machine = ReadMachine(root.path());
  EXPECT_EQ(machine.cgroup_cpus, 0);
  std::string text;
  JsonWriter json(&text);
  WriteJson(machine, json);
  EXPECT_NE(text.find("\"cpu_model\":null"), std::string::npos) << text;
  EXPECT_NE(text.find("\"cgroup_cpus\":null"), std::string::npos) << text;
}

}  // namespace
}  // namespace firstframe
