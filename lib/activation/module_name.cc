#include "lib/activation/module_name.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace firstframe {
namespace {

constexpr std::array<absl::string_view, 4> kWrappers = {
    "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module",
    "base_layer"};

bool IsNumber(absl::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return absl::ascii_isdigit(c);
  });
}

// "[3]" becomes ".3", "/" becomes ".".
std::string Dotted(absl::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '/') {
      out.push_back('.');
    } else if (name[i] == '[') {
      const size_t close = name.find(']', i);
      if (close != absl::string_view::npos &&
          IsNumber(name.substr(i + 1, close - i - 1))) {
        absl::StrAppend(&out, ".", name.substr(i + 1, close - i - 1));
        i = close;
      } else {
        out.push_back('[');
      }
    } else {
      out.push_back(name[i]);
    }
  }
  return out;
}

}  // namespace

std::string CanonicalModule(absl::string_view name) {
  const std::string dotted = Dotted(name);
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(dotted, '.')) {
    const bool leads = parts.empty();
    if (std::find(kWrappers.begin(), kWrappers.end(), part) !=
            kWrappers.end() ||
        (leads && (part == "module" || part.empty()))) {
      continue;
    }
    parts.push_back(part);
  }
  if (parts.size() > 1 && !parts[0].empty() &&
      absl::ascii_isupper(parts[0][0])) {
    parts.erase(parts.begin());
  }
  return absl::StrJoin(parts, ".");
}

std::string ModuleTemplate(absl::string_view name) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    parts.push_back(IsNumber(part) ? "*" : part);
  }
  return absl::StrJoin(parts, ".");
}

std::string LeafTemplate(absl::string_view name) {
  const std::string whole = ModuleTemplate(name);
  const std::vector<absl::string_view> parts = absl::StrSplit(whole, '.');
  size_t i = parts.size();
  while (i > 0 && parts[i - 1] == "*") --i;
  if (i == 0) return whole;
  return absl::StrJoin(parts.begin() + (i - 1), parts.end(), ".");
}

}  // namespace firstframe
