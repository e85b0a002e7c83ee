// The scopes that a thread has open, so that a C caller's disorder is an error
// and not a crash.

#ifndef LIB_C_API_SCOPE_STACK_H_
#define LIB_C_API_SCOPE_STACK_H_

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace firstframe::c_api {

// Of one thread. Handles are compared, never followed, so that one which was
// ended before or belongs to another thread is found out.
class ScopeStack {
 public:
  void Push(const void* handle) { handles_.push_back(handle); }

  // Takes `handle` off. FailedPrecondition unless it is on top.
  absl::Status Pop(const void* handle, absl::string_view what) {
    if (handles_.empty() || handles_.back() != handle) {
      return absl::FailedPreconditionError(absl::StrCat(
          "this ", what,
          " is not the innermost open scope of this thread: scopes end on the "
          "thread that began them, innermost first"));
    }
    handles_.pop_back();
    return absl::OkStatus();
  }

  absl::Status CheckHolds(const void* handle, absl::string_view what) const {
    if (std::find(handles_.begin(), handles_.end(), handle) != handles_.end()) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("this ", what, " is not open on this thread"));
  }

 private:
  std::vector<const void*> handles_;
};

}  // namespace firstframe::c_api

#endif  // LIB_C_API_SCOPE_STACK_H_
