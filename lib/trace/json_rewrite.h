// Writes trace events anew: strict JSON out of whatever was read, with changes
// on the way.

#ifndef LIB_TRACE_JSON_REWRITE_H_
#define LIB_TRACE_JSON_REWRITE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// What becomes of one member or element on the way.
struct JsonEdit {
  enum class Action { kKeep, kReplace, kDrop };
  Action action = Action::kKeep;
  std::string json = {};  // for kReplace: one valid JSON value
};

// Asked for every value that has a key, outer ones first. `path` is the keys
// from the outside joined with '.', "args.Call stack"; array elements have
// their array's path. `raw` is the value as it stands.
using JsonEditor =
    absl::FunctionRef<JsonEdit(absl::string_view path, absl::string_view raw)>;

// Appends `raw` (one value, as json_scan.h steps over it) as strict JSON:
// strings are decoded and encoded again, bare words become null, commas too
// many go, nesting beyond 64 becomes null.
void AppendCleanJson(absl::string_view raw, std::string* out);

// The same, with `edit` asked on the way.
void AppendEditedJson(absl::string_view raw, JsonEditor edit, std::string* out);

}  // namespace firstframe

#endif  // LIB_TRACE_JSON_REWRITE_H_
