// Regions and spans for C++ programs, recorded by one profiler per process.
//
//   int main() {
//     ProfilerOptions options = ...;                   // off: do not start it
//     absl::StatusOr<Profiler*> profiler = Profiler::Start(options);
//     {
//       FF_PROFILE_REGION("decode");                   // collects while open
//       FF_PROFILE_SPAN("upload");                     // a span inside it
//     }
//     ProfiledCall("decode", [&] { return Decode(latent); });
//     Profiler::Stop();                                // writes the files
//   }
//
// Until Start() succeeds every region and span is one load and one branch.
// Regions nest, also across threads; collection is on while a selected one is
// open anywhere. Each region and span is mirrored as an NVTX range when a tool
// that takes them (Nsight Systems, profile_run) is attached.

#ifndef LIB_PROFILER_PROFILER_H_
#define LIB_PROFILER_PROFILER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/profiler/session.h"

namespace firstframe {

struct ProfilerOptions {
  SessionOptions session;
  // Mirror regions and spans as NVTX ranges.
  bool nvtx = true;
};

// Process-wide; thread-safe.
class Profiler {
 public:
  // Starts the process's profiler, or returns the one that runs already: later
  // callers share it, and their options do not count.
  static absl::StatusOr<Profiler*> Start(ProfilerOptions options);

  // The profiler that runs, or null.
  static Profiler* Get() { return active_.load(std::memory_order_relaxed); }

  // Ends recording and writes all files; regions still open are cut off.
  // Returns what the session has to say (regions never entered, what was
  // dropped, where the files are). Idempotent. Call it before exit.
  static std::vector<std::string> Stop();

  Session& session() { return *session_; }
  bool nvtx() const { return nvtx_; }
  // From 1; another number for each start in the process.
  uint64_t generation() const { return generation_; }

 private:
  Profiler(std::unique_ptr<Session> session, bool nvtx, uint64_t generation)
      : session_(std::move(session)), nvtx_(nvtx), generation_(generation) {}

  static std::atomic<Profiler*> active_;

  std::unique_ptr<Session> session_;
  const bool nvtx_;
  const uint64_t generation_;
};

// A name looked up once: a static beside its uses. Trivially destructible.
class ProfilerName {
 public:
  // `name` must live as long as the program (a literal).
  constexpr explicit ProfilerName(const char* name, bool is_region)
      : name_(name), is_region_(is_region) {}

  // The number the running session gave it.
  Session::Name Resolve(Profiler& profiler) {
    const uint64_t known = known_.load(std::memory_order_relaxed);
    if (known >> 33 == profiler.generation()) {
      return {.id = static_cast<uint32_t>(known >> 1),
              .selected = (known & 1) != 0};
    }
    return Look(profiler);
  }
  const char* text() const { return name_; }

 private:
  Session::Name Look(Profiler& profiler);

  const char* const name_;
  const bool is_region_;
  std::atomic<uint64_t> known_ = 0;  // generation, 32 bits of id, selected
};

// A region or span from construction to destruction, on one thread.
class ProfilerScope {
 public:
  explicit ProfilerScope(ProfilerName& name) {
    if (Profiler* const profiler = Profiler::Get();
        __builtin_expect(profiler != nullptr, 0)) {
      Begin(*profiler, name);
    }
  }
  ~ProfilerScope() {
    if (__builtin_expect(profiler_ != nullptr, 0)) End();
  }
  ProfilerScope(const ProfilerScope&) = delete;
  ProfilerScope& operator=(const ProfilerScope&) = delete;

 private:
  friend class ProfilerRegion;
  ProfilerScope() = default;
  void Begin(Profiler& profiler, ProfilerName& name) {
    Begin(profiler, name.Resolve(profiler), name.text());
  }
  void Begin(Profiler& profiler, Session::Name name, const char* text);
  void End();

  Profiler* profiler_ = nullptr;
  Session::Name name_;
  Session::Open open_;
};

// A region whose name is not known before; looks it up each time.
class ProfilerRegion {
 public:
  explicit ProfilerRegion(absl::string_view name) {
    if (Profiler* const profiler = Profiler::Get();
        __builtin_expect(profiler != nullptr, 0)) {
      Begin(*profiler, name);
    }
  }

 private:
  void Begin(Profiler& profiler, absl::string_view name);
  ProfilerScope scope_;
};

// Calls `callable` inside region `name` and returns what it returns; the region
// ends also when it throws.
template <typename Callable>
decltype(auto) ProfiledCall(absl::string_view name, Callable&& callable) {
  const ProfilerRegion region(name);
  return std::forward<Callable>(callable)();
}

#define FF_PROFILE_JOIN_INNER_(a, b) a##b
#define FF_PROFILE_JOIN_(a, b) FF_PROFILE_JOIN_INNER_(a, b)
#define FF_PROFILE_SCOPE_(name, is_region)                      \
  static constinit ::firstframe::ProfilerName FF_PROFILE_JOIN_( \
      ff_name_, __LINE__)(name, is_region);                     \
  const ::firstframe::ProfilerScope FF_PROFILE_JOIN_(           \
      ff_scope_, __LINE__)(FF_PROFILE_JOIN_(ff_name_, __LINE__))

// The rest of the enclosing block is region or span `name`, a literal.
#define FF_PROFILE_REGION(name) FF_PROFILE_SCOPE_(name, true)
#define FF_PROFILE_SPAN(name) FF_PROFILE_SCOPE_(name, false)

}  // namespace firstframe

#endif  // LIB_PROFILER_PROFILER_H_
