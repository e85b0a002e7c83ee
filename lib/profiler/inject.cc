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
#include "lib/regions/region_names.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"

namespace firstframe {
namespace {

const char* Env(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The session of this process, or null: not started, or failed.
std::atomic<Session*> session = nullptr;
// How many processes this one descends from by fork alone: what is remembered
// of another's session is told by it.
std::atomic<int> generation = 0;
// A forked child starts a session of its own at its first range.
std::atomic<bool> is_due = false;

// Held over a fork, so that the child finds them free.
struct Mutexes {
  std::mutex start;
  std::mutex ranges;
};
Mutexes& GetMutexes() {
  static Mutexes& mutexes = *new Mutexes;
  return mutexes;
}

// Leaves the default where the variable is missing or no number.
template <typename Number>
void SetNumber(const char* name, Number* number) {
  double value = 0;
  if (absl::SimpleAtod(Env(name), &value) && value >= 0 && value < 9e18) {
    *number = static_cast<Number>(value);
  }
}

SessionOptions ReadOptions() {
  SessionOptions options;
  options.dir = Env("FIRSTFRAME_PROFILE_DIR");
  options.all = absl::string_view(Env("FIRSTFRAME_PROFILE_ALL")) == "1";
  options.collect_gpu = absl::string_view(Env("FIRSTFRAME_PROFILE_GPU")) != "0";
  options.call_callbacks =
      absl::string_view(Env("FIRSTFRAME_PROFILE_CALLS")) != "records";
  options.hold_cupti =
      absl::string_view(Env("FIRSTFRAME_PROFILE_HOLD_CUPTI")) != "0";
  RegionRegistry registry = RegionRegistry::Default();
  AddRegionNames(Env("FIRSTFRAME_PROFILE_REGISTRY"), &registry);
  const absl::string_view regions = Env("FIRSTFRAME_PROFILE_REGIONS");
  // With everything recorded, no region need be named.
  if (!regions.empty() || !options.all) {
    options.regions = RegionSelection::Parse(
        regions, registry,
        {.allow_unregistered = true, .setting = "--regions"});
  }
  SetNumber("FIRSTFRAME_PROFILE_MAX_BYTES", &options.max_bytes);
  SetNumber("FIRSTFRAME_PROFILE_MAX_DEVICE_BYTES", &options.max_device_bytes);
  SetNumber("FIRSTFRAME_PROFILE_MAX_SECONDS", &options.max_seconds);
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

void BeforeFork() {
  GetMutexes().start.lock();
  GetMutexes().ranges.lock();
}
void AfterFork() {
  GetMutexes().ranges.unlock();
  GetMutexes().start.unlock();
}

// A forked child has none of our threads, and shares our file: what it records
// goes to one of its own. A program it executes is injected anew.
void AfterForkInChild() {
  ++generation;
  if (Session* const inherited = session.exchange(nullptr)) {
    inherited->Abandon();
    is_due = true;
  }
  AfterFork();
}

// Starts the session at the first call in a process.
Session* GetSession() {
  const std::lock_guard<std::mutex> lock(GetMutexes().start);
  static int tried_in = -1;
  if (tried_in == generation) return session;
  const bool is_first = tried_in == -1;
  tried_in = generation;
  is_due = false;
  if (*Env("FIRSTFRAME_PROFILE_DIR") == '\0') return nullptr;
  SessionOptions options = ReadOptions();
  // Python's workers leave by _exit, which calls nobody.
  options.write_through = !is_first;
  options.on_attach = [] { std::atexit(&StopAtExit); };
  absl::StatusOr<std::unique_ptr<Session>> started =
      Session::Start(std::move(options));
  if (!started.ok()) {
    std::fprintf(stderr, "profile_run: not recording this process: %s\n",
                 std::string(started.status().message()).c_str());
    return nullptr;
  }
  // Never deleted: CUPTI and NVTX may call until the very end.
  session.store(started->release(), std::memory_order_release);
  if (is_first) {
    std::atexit(&StopAtExit);
    ::pthread_atfork(&BeforeFork, &AfterFork, &AfterForkInChild);
  }
  return session;
}

Session* Running() {
  Session* const running = session.load(std::memory_order_acquire);
  if (__builtin_expect(running != nullptr, 1)) return running;
  return is_due.load(std::memory_order_relaxed) ? GetSession() : nullptr;
}

class Ranges : public NvtxHandler {
 public:
  void OnPush(absl::string_view name) override {
    Session* const running = Running();
    if (running == nullptr) return;
    const Session::Name id = Intern(*running, name);
    stack_.push_back({id, running->Enter(id), generation});
  }

  void OnPop() override {
    Session* const running = session.load(std::memory_order_relaxed);
    if (running == nullptr || stack_.empty()) return;
    const Range range = stack_.back();
    stack_.pop_back();
    Leave(*running, range);
  }

  uint64_t OnStart(absl::string_view name) override {
    Session* const running = Running();
    if (running == nullptr) return 0;
    const Session::Name id = Intern(*running, name);
    const Range range = {id, running->Enter(id, /*may_move=*/true), generation};
    const std::lock_guard<std::mutex> lock(GetMutexes().ranges);
    open_.emplace(++last_range_, range);
    return last_range_;
  }

  void OnEnd(uint64_t number) override {
    Session* const running = session.load(std::memory_order_relaxed);
    if (running == nullptr) return;
    Range range;
    {
      const std::lock_guard<std::mutex> lock(GetMutexes().ranges);
      const auto found = open_.find(number);
      if (found == open_.end()) return;
      range = found->second;
      open_.erase(found);
    }
    Leave(*running, range);
  }

 private:
  struct Range {
    Session::Name name;
    Session::Open entry;
    int generation;
  };

  // A range that was entered before the fork is the parent's.
  static void Leave(Session& running, const Range& range) {
    if (range.generation == generation.load(std::memory_order_relaxed)) {
      running.Exit(range.name, range.entry);
    }
  }

  // Each thread remembers the names it has used: no lock on the way.
  static Session::Name Intern(Session& running, absl::string_view name) {
    struct Known {
      int generation = 0;
      absl::flat_hash_map<std::string, Session::Name> names;
    };
    static thread_local Known known;
    if (known.generation != generation.load(std::memory_order_relaxed)) {
      known.generation = generation;
      known.names.clear();
    }
    if (const auto found = known.names.find(name); found != known.names.end()) {
      return found->second;
    }
    const Session::Name id = running.Intern(name);
    known.names.emplace(name, id);
    return id;
  }

  static thread_local std::vector<Range> stack_;
  std::unordered_map<uint64_t, Range> open_;  // under Mutexes::ranges
  uint64_t last_range_ = 0;
};

thread_local std::vector<Ranges::Range> Ranges::stack_;

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
