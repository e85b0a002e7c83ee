#include "lib/load/numa.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace firstframe {
namespace {

constexpr int kMostCpus = 4096;
constexpr int kMpolPreferred = 1;  // linux/mempolicy.h, part of the ABI
constexpr int kMostNodes = 1024;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  const absl::string_view list = absl::StripAsciiWhitespace(text);
  if (list.empty()) return cpus;
  for (const absl::string_view range : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
        last >= kMostCpus) {
      return absl::InvalidArgumentError(absl::StrCat(
          "found '", range, "' in a list of CPUs, expected numbers from 0 to ",
          kMostCpus - 1, " or ranges of them"));
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (cpus.size() > kMostCpus) {
      return absl::InvalidArgumentError("a list of CPUs repeats itself");
    }
  }
  return cpus;
}

bool HasSeveralNodes(const std::string& folder) {
  const absl::StatusOr<std::vector<int>> online =
      ParseCpuList(ReadAll(absl::StrCat(folder, "/online")));
  return online.ok() && online->size() > 1;
}

NumaPlace FindNumaPlace(int node, const std::string& folder) {
  NumaPlace place;
  if (node < 0 || !HasSeveralNodes(folder)) return place;
  absl::StatusOr<std::vector<int>> cpus =
      ParseCpuList(ReadAll(absl::StrCat(folder, "/node", node, "/cpulist")));
  if (!cpus.ok() || cpus->empty()) return place;
  place.node = node;
  place.cpus = *std::move(cpus);
  return place;
}

absl::Status PreferNode(void* data, size_t size, int node) {
  constexpr int kBits = 8 * sizeof(unsigned long);
  unsigned long mask[kMostNodes / kBits] = {};
  if (node < 0 || node >= kMostNodes) {
    return absl::InvalidArgumentError(absl::StrCat("no memory node ", node));
  }
  mask[node / kBits] = 1ul << (node % kBits);
  // The kernel reads one bit less than it is told.
  if (::syscall(SYS_mbind, data, size, kMpolPreferred, mask, kMostNodes + 1,
                0) != 0) {
    return absl::UnavailableError(
        absl::StrCat("memory of node ", node, " refused: ", ::strerror(errno)));
  }
  return absl::OkStatus();
}

void RunThreadOn(const std::vector<int>& cpus) {
  cpu_set_t allowed;
  if (cpus.empty() || ::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return;
  }
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &wanted);
  }
  if (CPU_COUNT(&wanted) > 0) ::sched_setaffinity(0, sizeof(wanted), &wanted);
}

}  // namespace firstframe
