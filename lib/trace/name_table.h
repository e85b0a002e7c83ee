// Numbers for strings, up to a limit on memory.

#ifndef LIB_TRACE_NAME_TABLE_H_
#define LIB_TRACE_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Number 0 is the empty name. Past the limit every new name is "(other)": a
// trace whose kernel names are all different must not fill the memory.
// Thread-compatible.
class NameTable {
 public:
  explicit NameTable(size_t max_bytes) : max_bytes_(max_bytes) {
    names_.emplace_back();
  }

  uint32_t Intern(absl::string_view name) {
    if (name.empty()) return 0;
    if (const auto found = ids_.find(name); found != ids_.end()) {
      return found->second;
    }
    if (bytes_ + name.size() > max_bytes_ && name != kOther) {
      return Intern(kOther);
    }
    bytes_ += name.size();
    // A deque never moves its strings, so the keys stay valid.
    names_.emplace_back(name);
    const auto id = static_cast<uint32_t>(names_.size() - 1);
    ids_.emplace(names_.back(), id);
    return id;
  }

  const std::string& Get(uint32_t id) const { return names_[id]; }
  size_t size() const { return names_.size(); }

 private:
  static constexpr absl::string_view kOther = "(other)";

  const size_t max_bytes_;
  size_t bytes_ = 0;
  std::deque<std::string> names_;
  absl::flat_hash_map<absl::string_view, uint32_t> ids_;
};

}  // namespace firstframe

#endif  // LIB_TRACE_NAME_TABLE_H_
