// libfirstframe_inject.so: records a program that knows nothing of us.
//
// The CUDA driver loads it through CUDA_INJECTION64_PATH and calls
// InitializeInjection inside cuInit; NVTX loads it through
// NVTX_INJECTION64_PATH at the first range. profile_run sets both, and
// FIRSTFRAME_PROFILE_* with what to record (docs/formats/profile.md). This is a
// program's entry in all but name: it reads the environment, and writes to
// stderr once when it fails.

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/profiler/nvtx_injection.h"
#include "lib/profiler/profiler_settings.h"
#include "lib/profiler/session.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"

namespace firstframe {
namespace {

const char* Env(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The session of this process, or null: not started, failed, or a forked child.
std::atomic<Session*> session = nullptr;

SessionOptions ReadOptions() {
  SessionOptions options;
  options.dir = Env("FIRSTFRAME_PROFILE_DIR");
  options.all = absl::string_view(Env("FIRSTFRAME_PROFILE_ALL")) == "1";
  options.collect_gpu = absl::string_view(Env("FIRSTFRAME_PROFILE_GPU")) != "0";
  options.hold_cupti =
      absl::string_view(Env("FIRSTFRAME_PROFILE_HOLD_CUPTI")) != "0";
  options.regions = RegionSelection::Parse(
      Env("FIRSTFRAME_PROFILE_REGIONS"), RegionRegistry::Default(),
      {.allow_unregistered = true, .setting = "--regions"});
  absl::SimpleAtoi(Env("FIRSTFRAME_PROFILE_MAX_BYTES"), &options.max_bytes);
  absl::SimpleAtoi(Env("FIRSTFRAME_PROFILE_MAX_DEVICE_BYTES"),
                   &options.max_device_bytes);
  absl::SimpleAtod(Env("FIRSTFRAME_PROFILE_MAX_SECONDS"), &options.max_seconds);
  const ProfilerSettings settings =
      ReadProfilerSettings([](const char* name) { return std::getenv(name); });
  if (absl::string_view(Env("FIRSTFRAME_PROFILE_RANK")) != "0") {
    options.rank = settings.rank;
    options.world_size = settings.world_size;
  }
  options.cupti_search = cuda::MakeLibrarySearch(
      Env("VIRTUAL_ENV"), Env("CONDA_PREFIX"), Env("PATH"));
  return options;
}

void StopAtExit() {
  if (Session* const running = session.exchange(nullptr)) running->Stop();
}

// A forked child shares our file and has none of our threads: it records
// nothing. A program it executes is injected anew.
void ForgetInChild() {
  if (Session* const inherited = session.exchange(nullptr)) {
    inherited->Abandon();
  }
}

Session* GetSession() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (*Env("FIRSTFRAME_PROFILE_DIR") == '\0') return;
    absl::StatusOr<std::unique_ptr<Session>> started =
        Session::Start(ReadOptions());
    if (!started.ok()) {
      std::fprintf(stderr, "profile_run: not recording this process: %s\n",
                   std::string(started.status().message()).c_str());
      return;
    }
    // Never deleted: CUPTI and NVTX may call until the very end.
    session.store(started->release());
    std::atexit(&StopAtExit);
    ::pthread_atfork(nullptr, nullptr, &ForgetInChild);
  });
  return session.load(std::memory_order_acquire);
}

class Ranges : public NvtxHandler {
 public:
  void OnPush(absl::string_view name) override {
    Session* const running = session.load(std::memory_order_relaxed);
    if (running == nullptr) return;
    const Session::Name id = Intern(*running, name);
    stack_.push_back({id, running->Enter(id)});
  }

  void OnPop() override {
    Session* const running = session.load(std::memory_order_relaxed);
    if (running == nullptr || stack_.empty()) return;
    const Open open = stack_.back();
    stack_.pop_back();
    running->Exit(open.name, open.entry);
  }

  uint64_t OnStart(absl::string_view name) override {
    Session* const running = session.load(std::memory_order_relaxed);
    if (running == nullptr) return 0;
    const Session::Name id = Intern(*running, name);
    const Open open = {id, running->Enter(id, /*may_move=*/true)};
    const std::lock_guard<std::mutex> lock(mutex_);
    open_.emplace(++last_range_, open);
    return last_range_;
  }

  void OnEnd(uint64_t range) override {
    Session* const running = session.load(std::memory_order_relaxed);
    if (running == nullptr) return;
    Open open;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = open_.find(range);
      if (found == open_.end()) return;
      open = found->second;
      open_.erase(found);
    }
    running->Exit(open.name, open.entry);
  }

 private:
  struct Open {
    Session::Name name;
    Session::Open entry;
  };

  // Each thread remembers the names it has used: no lock on the way.
  static Session::Name Intern(Session& running, absl::string_view name) {
    static thread_local absl::flat_hash_map<std::string, Session::Name> known;
    if (const auto found = known.find(name); found != known.end()) {
      return found->second;
    }
    const Session::Name id = running.Intern(name);
    known.emplace(name, id);
    return id;
  }

  static thread_local std::vector<Open> stack_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Open> open_;
  uint64_t last_range_ = 0;
};

thread_local std::vector<Ranges::Open> Ranges::stack_;

}  // namespace
}  // namespace firstframe

// Called by the CUDA driver inside cuInit. 1: success.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (firstframe::Session* const running = firstframe::GetSession()) {
    running->ArmGpu();
  }
  return 1;
}

// Called by each copy of NVTX at its first use.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    void* get_export_table) {
  static firstframe::Ranges& ranges = *new firstframe::Ranges;
  if (firstframe::GetSession() == nullptr) return 0;
  return firstframe::AttachNvtx(get_export_table, &ranges);
}
