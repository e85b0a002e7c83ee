#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text_width.h"
#include "lib/observe/startup_facts.h"

namespace firstframe {
namespace {

constexpr size_t kPackagesShown = 12;
constexpr size_t kLibrariesShown = 8;
constexpr size_t kMaxPackagesWritten = 200;

// Keys of the JSON and words of the text for each CudaSum.
constexpr const char* kSumKeys[kNumCudaSums] = {
    "module_loading",        "device_allocation",     "host_pinning",
    "copies_host_to_device", "copies_device_to_host", "host_waits"};
constexpr const char* kSumWords[kNumCudaSums] = {
    "code loading",          "device allocation",     "host pinning",
    "copies host to device", "copies device to host", "host waits"};

// GB/s of the copies that their calls waited for, or nothing without such.
std::optional<double> Rate(const ObservedSum& sum, int index) {
  if (index != kCudaHostToDevice && index != kCudaDeviceToHost) {
    return std::nullopt;
  }
  if (sum.ns <= sum.submitted_ns || sum.bytes <= sum.submitted_bytes) {
    return std::nullopt;
  }
  return static_cast<double>(sum.bytes - sum.submitted_bytes) /
         static_cast<double>(sum.ns - sum.submitted_ns);
}

struct NamedMoment {
  const char* key;
  const char* words;
  std::optional<int64_t> offset_ns;
};

std::vector<NamedMoment> Moments(const StartupMoments& moments) {
  return {
      {"main_ns", "main", moments.main_ns},
      {"python_ready_ns", "Python ready", moments.python_ready_ns},
      {"cuda_initialized_ns", "CUDA initialised", moments.cuda_initialized_ns},
      {"first_context_ns", "context made", moments.first_context_ns},
      {"first_host_to_device_ns", "first copy to the device",
       moments.first_host_to_device_ns},
      {"first_kernel_ns", "first kernel launched", moments.first_kernel_ns},
      {"first_region_ns", "first region begun", moments.first_region_ns},
      {"first_device_to_host_ns", "first copy back",
       moments.first_device_to_host_ns},
      {"exit_begin_ns", "exit begun", moments.exit_begin_ns}};
}

void WriteLaunched(const ProgramExit& launched, JsonWriter& json) {
  json.Key("wall_ns").Int(launched.exit_ns - launched.fork_ns);
  json.Key("exit_code").Int(launched.ShellCode());
  json.Key("user_ns").Int(launched.user_ns);
  json.Key("system_ns").Int(launched.system_ns);
  json.Key("max_resident_bytes").Int(launched.max_resident_bytes);
  json.Key("major_faults").Int(launched.major_faults);
  json.Key("storage_read_bytes").Int(launched.storage_read_bytes);
}

void WriteCacheState(const std::optional<FileCacheState>& state,
                     JsonWriter& json) {
  if (!state) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("files").Int(state->files);
  json.Key("size_bytes").Int(state->size_bytes);
  json.Key("resident_share").OptionalDouble(state->resident_share);
  json.EndObject();
}

void WritePackages(const StartupFacts& facts, JsonWriter& json) {
  json.Key("python_packages").BeginArray();
  for (size_t i = 0; i < std::min(facts.packages.size(), kMaxPackagesWritten);
       ++i) {
    const PackageImports& package = facts.packages[i];
    json.BeginObject();
    json.Key("package").String(package.package);
    json.Key("cumulative_ns").Int(package.cumulative_ns);
    json.Key("self_ns").Int(package.self_ns);
    json.Key("modules").Int(package.modules);
    json.EndObject();
  }
  json.EndArray();
}

void WriteFiles(const StartupFacts& facts, JsonWriter& json) {
  json.Key("checkpoint_files").BeginArray();
  for (const ObservedFile& file : facts.files) {
    json.BeginObject();
    json.Key("path").String(file.path);
    json.Key("size_bytes").Uint(file.size_bytes);
    json.Key("reads").Uint(file.reads);
    json.Key("read_bytes").Uint(file.read_bytes);
    json.Key("read_ns").Uint(file.read_ns);
    json.Key("mapped_bytes").Uint(file.mapped_bytes);
    json.EndObject();
  }
  json.EndArray();
}

void WriteCuda(const StartupFacts& facts, JsonWriter& json) {
  json.Key("cuda").BeginObject();
  for (int i = 0; i < kNumCudaSums; ++i) {
    const ObservedSum& sum = facts.cuda[i];
    json.Key(kSumKeys[i]).BeginObject();
    json.Key("calls").Uint(sum.calls);
    json.Key("duration_ns").Uint(sum.ns);
    json.Key("bytes").Uint(sum.bytes);
    json.Key("submitted_bytes").Uint(sum.submitted_bytes);
    json.Key("gb_per_s").OptionalDouble(Rate(sum, i));
    json.EndObject();
  }
  json.EndObject();
}

void TextPackages(const StartupFacts& facts, std::ostream& out) {
  if (facts.packages.empty()) return;
  int64_t total_ns = 0, modules = 0;
  for (const PackageImports& package : facts.packages) {
    total_ns += package.self_ns;
    modules += package.modules;
  }
  out << absl::StrFormat("\nimports: %d modules of %d packages, %.1f ms\n",
                         modules, facts.packages.size(), total_ns / 1e6);
  out << absl::StrFormat("  %-28s%14s%12s%9s\n", "package", "cumulative ms",
                         "self ms", "modules");
  for (size_t i = 0; i < std::min(facts.packages.size(), kPackagesShown); ++i) {
    const PackageImports& package = facts.packages[i];
    out << "  " << FitWidth(PrintableText(package.package), 28)
        << absl::StrFormat("%14.1f%12.1f%9d\n", package.cumulative_ns / 1e6,
                           package.self_ns / 1e6, package.modules);
  }
}

void TextLibraries(const StartupFacts& facts, std::ostream& out) {
  if (facts.libraries.empty()) return;
  int64_t total = 0;
  for (const LoadedLibrary& library : facts.libraries) {
    total += library.mapped_bytes;
  }
  out << absl::StrFormat("\nlibraries: %d, %.1f MB mapped; the largest:\n",
                         facts.libraries.size(), total / 1e6);
  for (size_t i = 0; i < std::min(facts.libraries.size(), kLibrariesShown);
       ++i) {
    out << absl::StrFormat("  %9.1f MB  ",
                           facts.libraries[i].mapped_bytes / 1e6)
        << PrintableText(facts.libraries[i].path) << '\n';
  }
}

void TextFiles(const StartupFacts& facts, std::ostream& out) {
  if (facts.files.empty()) return;
  out << "\ncheckpoint files:\n";
  for (const ObservedFile& file : facts.files) {
    out << absl::StrFormat("  %9.1f MB  read %.1f MB", file.size_bytes / 1e6,
                           file.read_bytes / 1e6);
    if (file.read_ns > 0 && file.read_bytes > 0) {
      out << absl::StrFormat(" (%.2f GB/s)",
                             static_cast<double>(file.read_bytes) /
                                 static_cast<double>(file.read_ns));
    }
    out << absl::StrFormat(", mapped %.1f MB  ", file.mapped_bytes / 1e6)
        << PrintableText(file.path) << '\n';
  }
}

void TextCuda(const StartupFacts& facts, std::ostream& out) {
  const bool any =
      std::any_of(facts.cuda.begin(), facts.cuda.end(),
                  [](const ObservedSum& sum) { return sum.calls > 0; });
  if (!any) return;
  out << "\nCUDA calls, host time:\n";
  for (int i = 0; i < kNumCudaSums; ++i) {
    const ObservedSum& sum = facts.cuda[i];
    if (sum.calls == 0) continue;
    out << absl::StrFormat("  %-24s%9d calls%12.1f ms", kSumWords[i], sum.calls,
                           sum.ns / 1e6);
    if (sum.bytes > 0) out << absl::StrFormat("%12.1f MB", sum.bytes / 1e6);
    if (const auto rate = Rate(sum, i)) {
      out << absl::StrFormat("%9.2f GB/s", *rate);
    } else if (sum.submitted_bytes > 0) {
      out << "  submitted only";
    }
    out << '\n';
  }
}

}  // namespace

void WriteStartupFactsJson(const StartupFacts& facts, JsonWriter& json) {
  json.BeginObject();
  WriteLaunched(facts.launched, json);
  json.Key("cache_before");
  WriteCacheState(facts.cache_before, json);
  json.Key("processes").Int(facts.num_processes);
  json.Key("dropped_events").Int(facts.dropped_events);
  json.Key("moments").BeginObject();
  for (const NamedMoment& moment : Moments(facts.moments)) {
    json.Key(moment.key);
    moment.offset_ns ? json.Int(*moment.offset_ns) : json.Null();
  }
  json.EndObject();
  WritePackages(facts, json);
  json.Key("libraries").BeginArray();
  for (const LoadedLibrary& library : facts.libraries) {
    json.BeginObject();
    json.Key("path").String(library.path);
    json.Key("mapped_bytes").Int(library.mapped_bytes);
    json.EndObject();
  }
  json.EndArray();
  WriteFiles(facts, json);
  WriteCuda(facts, json);
  json.EndObject();
}

void WriteStartupFactsText(const StartupFacts& facts, std::ostream& out) {
  out << "\nreached after:\n";
  for (const NamedMoment& moment : Moments(facts.moments)) {
    if (!moment.offset_ns) continue;
    out << absl::StrFormat("  %-26s%12.1f ms\n", moment.words,
                           *moment.offset_ns / 1e6);
  }
  TextPackages(facts, out);
  TextLibraries(facts, out);
  TextFiles(facts, out);
  TextCuda(facts, out);
  if (facts.cache_before) {
    const FileCacheState& state = *facts.cache_before;
    out << absl::StrFormat("\nevicted before: %d files, %.1f MB; ", state.files,
                           state.size_bytes / 1e6)
        << (state.resident_share
                ? absl::StrFormat("%.1f%% stayed in the page cache\n",
                                  100 * *state.resident_share)
                : std::string("how much stayed is not known\n"));
  }
  out << absl::StrFormat(
      "\nread from storage %.1f MB, major faults %d, processor time %.1f s user"
      " %.1f s system, resident %.0f MB at most\n",
      facts.launched.storage_read_bytes / 1e6, facts.launched.major_faults,
      facts.launched.user_ns / 1e9, facts.launched.system_ns / 1e9,
      facts.launched.max_resident_bytes / 1e6);
  if (facts.num_processes == 0) {
    out << "the program was not seen from inside: it is linked statically, or"
           " runs with other rights\n";
  }
  if (facts.dropped_events > 0) {
    out << absl::StrFormat("%d events found no room\n", facts.dropped_events);
  }
}

}  // namespace firstframe
