// What a shared library needs in place of three objects of Debian's Abseil.
//
// Debian builds libabsl_*.a for executables. All but three objects also link
// into a shared library; those three hold thread-local variables that the
// linker cannot place in one. These are their functions without the variables:
// sampling of Cords stays off, hash tables are seeded without a counter, and a
// thread's id is asked of the kernel. (third_party/shared_archives.bzl is the
// other way: a library that finds Debian's shared Abseil where it is loaded.
// This one goes into programs on machines that have none.) Linked into
// libfirstframe_inject.so alone, before the archives, whose three objects are
// then not taken. Another version of Abseil fails here at build time, by a
// missing or second symbol.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <thread>

#include "absl/base/internal/sysinfo.h"
#include "absl/container/internal/raw_hash_set.h"
#include "absl/strings/internal/cordz_functions.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

namespace cord_internal {

ABSL_CONST_INIT thread_local int64_t cordz_next_sample = INT64_MAX;

bool cordz_should_profile_slow() {
  cordz_next_sample = INT64_MAX;
  return false;
}
void cordz_set_next_sample_for_testing(int64_t next) {
  cordz_next_sample = next;
}
int32_t get_cordz_mean_interval() { return 0; }
void set_cordz_mean_interval(int32_t) {}

}  // namespace cord_internal

namespace container_internal {

// An empty table's control bytes: its end, and nothing.
alignas(16) ABSL_CONST_INIT extern const ctrl_t kEmptyGroup[16] = {
    ctrl_t::kSentinel, ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty,
    ctrl_t::kEmpty,    ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty,
    ctrl_t::kEmpty,    ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty,
    ctrl_t::kEmpty,    ctrl_t::kEmpty, ctrl_t::kEmpty, ctrl_t::kEmpty};

// Only shuffles the order of small tables.
bool ShouldInsertBackwards(size_t, const ctrl_t*) { return false; }

void ConvertDeletedToEmptyAndFullToDeleted(ctrl_t* control, size_t capacity) {
  for (size_t i = 0; i < capacity; ++i) {
    control[i] = IsFull(control[i]) ? ctrl_t::kDeleted : ctrl_t::kEmpty;
  }
  control[capacity] = ctrl_t::kSentinel;
  // The first bytes stand again behind the end, for group loads to run into.
  for (size_t i = 0; i < NumClonedBytes(); ++i) {
    control[capacity + 1 + i] = control[i];
  }
}

void HashTableSizeOverflow() { std::abort(); }

template FindInfo find_first_non_full(const ctrl_t*, size_t, size_t);

}  // namespace container_internal

namespace base_internal {

double NominalCPUFrequency() { return 1.0; }
int NumCPUs() { return static_cast<int>(std::thread::hardware_concurrency()); }
pid_t GetTID() { return static_cast<pid_t>(::syscall(SYS_gettid)); }
pid_t GetCachedTID() { return GetTID(); }

}  // namespace base_internal
ABSL_NAMESPACE_END
}  // namespace absl
