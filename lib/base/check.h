// FF_CHECK: stops the process on a bug of ours.
//
// For conditions that only a mistake in this repository can break. Anything an
// input, a file, a device or a caller outside the repository can cause is an
// absl::Status instead.

#ifndef LIB_BASE_CHECK_H_
#define LIB_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace firstframe::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line,
                                     const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace firstframe::internal

// Evaluates `condition` once, in every build mode.
#define FF_CHECK(condition)                          \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::firstframe::internal::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // LIB_BASE_CHECK_H_
