#include "lib/observe/startup_facts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace firstframe {
namespace {

void Earliest(std::optional<int64_t>& moment, int64_t time_ns,
              int64_t fork_ns) {
  if (time_ns == 0) return;
  const int64_t offset_ns = time_ns - fork_ns;
  if (!moment || offset_ns < *moment) moment = offset_ns;
}

// Of a process that began by fork, main and the interpreter are its parent's.
void AddMoments(const ObservedProcess& process, int64_t fork_ns,
                StartupMoments* moments) {
  if (!process.is_fork) {
    Earliest(moments->main_ns, process.main_ns, fork_ns);
    Earliest(moments->python_ready_ns, process.python_start_ns, fork_ns);
  }
  Earliest(moments->first_kernel_ns, process.first_kernel_ns, fork_ns);
  Earliest(moments->first_region_ns, process.first_region_ns, fork_ns);
  for (const ObservedEvent& event : process.events) {
    if (event.kind != EventKind::kCuda) continue;
    if (event.name == "cuInit") {
      Earliest(moments->cuda_initialized_ns, event.end_ns, fork_ns);
    } else if (absl::StrContains(event.name, "Ctx") && event.slot == 0) {
      Earliest(moments->first_context_ns, event.end_ns, fork_ns);
    } else if (event.slot == kCudaHostToDevice + 1) {
      Earliest(moments->first_host_to_device_ns, event.end_ns, fork_ns);
    } else if (event.slot == kCudaDeviceToHost + 1) {
      Earliest(moments->first_device_to_host_ns, event.end_ns, fork_ns);
    }
  }
}

std::string PackageOf(const std::string& module) {
  return module.substr(0, module.find('.'));
}

// Imports of one thread nest; each adds its own time to its package's self, and
// its whole time to the package's sum unless a module of that package imports
// it.
void AddImports(std::vector<const ObservedImport*> imports,
                std::map<std::string, PackageImports>* packages) {
  std::sort(imports.begin(), imports.end(),
            [](const ObservedImport* a, const ObservedImport* b) {
              if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
              return a->end_ns > b->end_ns;
            });
  struct Open {
    int64_t end_ns;
    PackageImports* package;
  };
  std::vector<Open> open;
  for (const ObservedImport* import : imports) {
    while (!open.empty() && open.back().end_ns <= import->start_ns) {
      open.pop_back();
    }
    PackageImports& package = (*packages)[PackageOf(import->module)];
    const int64_t duration_ns = import->end_ns - import->start_ns;
    const bool is_inside = std::any_of(
        open.begin(), open.end(),
        [&](const Open& outer) { return outer.package == &package; });
    if (!is_inside) package.cumulative_ns += duration_ns;
    package.self_ns += duration_ns;
    ++package.modules;
    if (!open.empty()) open.back().package->self_ns -= duration_ns;
    open.push_back({.end_ns = import->end_ns, .package = &package});
  }
}

void AddPackages(absl::Span<const ObservedProcess> processes,
                 StartupFacts* facts) {
  std::map<std::string, PackageImports> packages;
  for (const ObservedProcess& process : processes) {
    std::map<int64_t, std::vector<const ObservedImport*>> threads;
    for (const ObservedImport& import : process.imports) {
      threads[import.tid].push_back(&import);
    }
    for (auto& [tid, imports] : threads) {
      AddImports(std::move(imports), &packages);
    }
  }
  for (auto& [name, package] : packages) {
    package.package = name;
    facts->packages.push_back(package);
  }
  std::stable_sort(facts->packages.begin(), facts->packages.end(),
                   [](const PackageImports& a, const PackageImports& b) {
                     return a.cumulative_ns > b.cumulative_ns;
                   });
}

void AddLibraries(absl::Span<const ObservedProcess> processes,
                  StartupFacts* facts) {
  std::map<std::string, int64_t> libraries;
  for (const ObservedProcess& process : processes) {
    for (const ObservedEvent& event : process.events) {
      if (event.kind != EventKind::kLibrary) continue;
      if (absl::EndsWith(event.name, "/libfirstframe_startup.so")) continue;
      libraries[event.name] = static_cast<int64_t>(event.value);
    }
  }
  for (const auto& [path, bytes] : libraries) {
    facts->libraries.push_back({.path = path, .mapped_bytes = bytes});
  }
  std::stable_sort(facts->libraries.begin(), facts->libraries.end(),
                   [](const LoadedLibrary& a, const LoadedLibrary& b) {
                     return a.mapped_bytes > b.mapped_bytes;
                   });
}

}  // namespace

StartupFacts GatherStartupFacts(const ProgramExit& launched,
                                absl::Span<const ObservedProcess> processes) {
  StartupFacts facts = {
      .launched = launched,
      .num_processes = static_cast<int64_t>(processes.size())};
  for (const ObservedProcess& process : processes) {
    facts.dropped_events += static_cast<int64_t>(process.dropped_events);
    AddMoments(process, launched.fork_ns, &facts.moments);
    if (process.pid == launched.pid) {
      const int64_t exit_ns =
          process.python_exit_ns > 0 ? process.python_exit_ns : process.exit_ns;
      Earliest(facts.moments.exit_begin_ns, exit_ns, launched.fork_ns);
    }
    facts.files.insert(facts.files.end(), process.files.begin(),
                       process.files.end());
    for (int i = 0; i < kNumCudaSums; ++i) {
      facts.cuda[i].calls += process.cuda[i].calls;
      facts.cuda[i].ns += process.cuda[i].ns;
      facts.cuda[i].bytes += process.cuda[i].bytes;
      facts.cuda[i].submitted_ns += process.cuda[i].submitted_ns;
      facts.cuda[i].submitted_bytes += process.cuda[i].submitted_bytes;
    }
  }
  AddPackages(processes, &facts);
  AddLibraries(processes, &facts);
  std::stable_sort(facts.files.begin(), facts.files.end(),
                   [](const ObservedFile& a, const ObservedFile& b) {
                     return a.open_ns < b.open_ns;
                   });
  return facts;
}

}  // namespace firstframe
