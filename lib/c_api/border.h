// The border between C callers and C++: statuses to codes, exceptions to none.

#ifndef LIB_C_API_BORDER_H_
#define LIB_C_API_BORDER_H_

#include <new>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/c_api/firstframe.h"

namespace firstframe::c_api {

// Remembers the message for ff_last_error() and returns the code.
ff_status Report(const absl::Status& status);

// The same for an exception that leaves no room for a status: `message` is of
// at most 15 characters, which take no memory of their own.
ff_status ReportShort(ff_status code, const char* message) noexcept;

// Returns a copy for ff_free().
char* CopyText(absl::string_view text);

// Calls `function`, which returns an absl::Status, and reports what it gives or
// throws.
template <typename Function>
ff_status Guard(Function&& function) noexcept {
  try {
    return Report(function());
  } catch (const std::bad_alloc&) {
    return ReportShort(FF_RESOURCE_EXHAUSTED, "out of memory");
  } catch (...) {  // ours throws none, so it comes from below
    return ReportShort(FF_INTERNAL, "an exception");
  }
}

// InvalidArgument that names the argument when `pointer` is null.
absl::Status NotNull(const void* pointer, absl::string_view name);

// Copies the members that this version knows. InvalidArgument when the caller's
// struct is smaller; when members are added, this learns to fill them.
template <typename Struct>
absl::Status ReadStruct(const Struct* from, absl::string_view name,
                        Struct& to) {
  if (absl::Status status = NotNull(from, name); !status.ok()) return status;
  if (from->struct_size < sizeof(Struct)) {
    return absl::InvalidArgumentError(std::string(name) + ": struct_size is " +
                                      std::to_string(from->struct_size) +
                                      ", expected at least " +
                                      std::to_string(sizeof(Struct)));
  }
  to = *from;
  return absl::OkStatus();
}

}  // namespace firstframe::c_api

#endif  // LIB_C_API_BORDER_H_
