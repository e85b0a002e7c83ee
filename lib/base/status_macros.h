// Early returns for absl::Status and absl::StatusOr, and one way to add a fact
// to an error on its way up.

#ifndef LIB_BASE_STATUS_MACROS_H_
#define LIB_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Returns `status` with "where: " in front of its message; keeps code and
// payloads. An OK status is returned as it is.
inline absl::Status Annotate(const absl::Status& status,
                             absl::string_view where) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(where, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace firstframe

// Returns from the enclosing function when `expr` is not OK.
#define FF_RETURN_IF_ERROR(expr)                              \
  do {                                                        \
    if (absl::Status ff_status_ = (expr); !ff_status_.ok()) { \
      return ff_status_;                                      \
    }                                                         \
  } while (false)

// Declares or assigns `lhs` from the StatusOr that `expr` yields, or returns
// its error. A comma in `lhs` needs parentheses around a type alias.
#define FF_ASSIGN_OR_RETURN(lhs, expr) \
  FF_ASSIGN_OR_RETURN_(FF_CONCAT_(ff_statusor_, __LINE__), lhs, expr)

#define FF_CONCAT_INNER_(a, b) a##b
#define FF_CONCAT_(a, b) FF_CONCAT_INNER_(a, b)
#define FF_ASSIGN_OR_RETURN_(tmp, lhs, expr)     \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)

#endif  // LIB_BASE_STATUS_MACROS_H_
