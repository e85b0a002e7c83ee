// ff_profiler_*, ff_region_*, ff_span_*: lib/profiler.

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/scope_stack.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/profiler/profiler.h"
#include "lib/profiler/profiler_settings.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"

using firstframe::c_api::CopyText;
using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;
using firstframe::c_api::ScopeStack;

struct ff_region {
  explicit ff_region(const char* name) : region(name) {}
  firstframe::ProfilerRegion region;
};

struct ff_span {
  explicit ff_span(firstframe::ProfilerName& name) : scope(name) {}
  firstframe::ProfilerScope scope;
};

namespace {

// Regions and spans nest in each other.
ScopeStack& Scopes() {
  thread_local ScopeStack stack;
  return stack;
}

// Spans keep their names by address, for good.
firstframe::ProfilerName& InternSpanName(const char* name) {
  static absl::Mutex* const mutex = new absl::Mutex;
  static auto* const names =
      new absl::node_hash_map<std::string,
                              std::unique_ptr<firstframe::ProfilerName>>;
  absl::MutexLock lock(mutex);
  const auto [found, is_new] = names->try_emplace(name);
  if (is_new) {
    found->second = std::make_unique<firstframe::ProfilerName>(
        found->first.c_str(), /*is_region=*/false);
  }
  return *found->second;
}

char* CopyLines(const std::vector<std::string>& lines) {
  return lines.empty() ? nullptr : CopyText(absl::StrJoin(lines, "\n"));
}

}  // namespace

extern "C" {

ff_status ff_profiler_start(const char* (*get)(const char*), int32_t* is_on,
                            char** messages) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(is_on, "is_on"));
    FF_RETURN_IF_ERROR(NotNull(messages, "messages"));
    const auto read = [&](const char* name) -> const char* {
      return get != nullptr ? get(name) : std::getenv(name);
    };
    const auto text = [&](const char* name) {
      const char* const value = read(name);
      return std::string(value != nullptr ? value : "");
    };
    const firstframe::ProfilerSettings settings =
        firstframe::ReadProfilerSettings(read);
    std::vector<std::string> lines = settings.warnings;
    if (settings.dir.empty()) {
      *is_on = 0;
      *messages = CopyLines(lines);
      return absl::OkStatus();
    }
    firstframe::ProfilerOptions options;
    options.session.dir = settings.dir;
    options.session.regions = firstframe::RegionSelection::Parse(
        settings.regions, firstframe::RegionRegistry::Default());
    options.session.rank = settings.rank;
    options.session.world_size = settings.world_size;
    options.session.cupti_search = firstframe::cuda::MakeLibrarySearch(
        text("VIRTUAL_ENV"), text("CONDA_PREFIX"), text("PATH"));
    const auto& warnings = options.session.regions.warnings();
    lines.insert(lines.end(), warnings.begin(), warnings.end());
    FF_RETURN_IF_ERROR(
        firstframe::Profiler::Start(std::move(options)).status());
    *is_on = 1;
    *messages = CopyLines(lines);
    return absl::OkStatus();
  });
}

ff_status ff_profiler_stop(char** messages) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(messages, "messages"));
    *messages = CopyLines(firstframe::Profiler::Stop());
    return absl::OkStatus();
  });
}

ff_status ff_region_begin(const char* name, ff_region** region) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(name, "name"));
    FF_RETURN_IF_ERROR(NotNull(region, "region"));
    if (firstframe::Profiler::Get() == nullptr) {
      *region = nullptr;
      return absl::OkStatus();
    }
    *region = new ff_region(name);
    Scopes().Push(*region);
    return absl::OkStatus();
  });
}

ff_status ff_region_end(ff_region* region) {
  if (region == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(region, "region"));
    delete region;
    return absl::OkStatus();
  });
}

ff_status ff_span_begin(const char* name, ff_span** span) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(name, "name"));
    FF_RETURN_IF_ERROR(NotNull(span, "span"));
    if (firstframe::Profiler::Get() == nullptr) {
      *span = nullptr;
      return absl::OkStatus();
    }
    *span = new ff_span(InternSpanName(name));
    Scopes().Push(*span);
    return absl::OkStatus();
  });
}

ff_status ff_span_end(ff_span* span) {
  if (span == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(span, "span"));
    delete span;
    return absl::OkStatus();
  });
}

}  // extern "C"
