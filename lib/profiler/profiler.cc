#include "lib/profiler/profiler.h"

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/status_macros.h"
#include "lib/profiler/nvtx_ranges.h"
#include "lib/profiler/trace_finalize.h"
#include "lib/regions/region.h"

namespace firstframe {
namespace {

absl::Mutex& StartMutex() {
  static absl::Mutex& mutex = *new absl::Mutex;
  return mutex;
}

}  // namespace

std::atomic<Profiler*> Profiler::active_ = nullptr;

absl::StatusOr<Profiler*> Profiler::Start(ProfilerOptions options) {
  absl::MutexLock lock(&StartMutex());
  if (Profiler* const running = Get()) return running;
  const bool nvtx = options.nvtx;
  const bool gpu = options.session.collect_gpu;
  FF_ASSIGN_OR_RETURN(auto session, Session::Start(std::move(options.session)));
  if (gpu) session->ArmGpu();
  // Never deleted: a span on another thread may still hold it.
  static uint64_t generation = 0;
  auto* const profiler = new Profiler(std::move(session), nvtx, ++generation);
  static auto* const kept = new std::vector<Profiler*>;  // not a leak
  kept->push_back(profiler);
  active_.store(profiler, std::memory_order_release);
  return profiler;
}

std::vector<std::string> Profiler::Stop() {
  absl::MutexLock lock(&StartMutex());
  Profiler* const profiler = active_.exchange(nullptr);
  if (profiler == nullptr) return {};
  Session& session = *profiler->session_;
  session.Stop();
  std::vector<std::string> messages = session.messages();
  const auto finished = FinalizeProfile(session.stem());
  messages.push_back(
      finished.ok() ? absl::StrCat("trace written to ", finished->trace_path)
                    : std::string(finished.status().message()));
  return messages;
}

Session::Name ProfilerName::Look(Profiler& profiler) {
  const std::string name =
      is_region_ ? RegionSpanName(name_) : std::string(name_);
  Session::Name found = profiler.session().Intern(name);
  if (!is_region_) found.selected = false;
  known_.store(profiler.generation() << 33 | uint64_t{found.id} << 1 |
                   (found.selected ? 1 : 0),
               std::memory_order_relaxed);
  return found;
}

void ProfilerScope::Begin(Profiler& profiler, Session::Name name,
                          const char* text) {
  profiler_ = &profiler;
  name_ = name;
  if (profiler.nvtx()) NvtxPush(text);
  open_ = profiler.session().Enter(name);
}

void ProfilerScope::End() {
  profiler_->session().Exit(name_, open_);
  if (profiler_->nvtx()) NvtxPop();
}

void ProfilerRegion::Begin(Profiler& profiler, absl::string_view name) {
  const std::string span = RegionSpanName(name);
  scope_.Begin(profiler, profiler.session().Intern(span), span.c_str());
}

}  // namespace firstframe
