// Whatever a process left in its files, reading them ends, in bounds.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/observe/observed_process.h"
#include "lib/observe/startup_facts.h"
#include "lib/observe/startup_timeline.h"

std::vector<std::string> FuzzSeeds() {
  std::string bytes(sizeof(firstframe::EventHeader) + 200, '\0');
  bytes.replace(0, 8, "FFSTART1");
  bytes[8] = static_cast<char>(200);  // used
  const size_t event = sizeof(firstframe::EventHeader);
  bytes[event] = 48;     // size
  bytes[event + 8] = 3;  // a file
  bytes[event + 10] = 5;
  return {bytes, "B 1\nI 1 2 3 torch\nA 4\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firstframe;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ObservedProcess log;
  ParseImportLog(bytes, &log);
  std::vector<ObservedProcess> processes = {log};
  if (auto process = ParseEventFile(bytes); process.ok()) {
    processes.push_back(*std::move(process));
  }
  GatherStartupFacts({.pid = 1, .exit_ns = 10}, processes);
  BuildStartupTimeline({.pid = 1, .exit_ns = 10}, processes);
  return 0;
}
