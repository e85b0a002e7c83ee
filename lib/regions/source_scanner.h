// Finds the region names that a source file registers, uses, documents or asks
// for, with their lines. Reads Python, C++, Markdown and settings (shell, YAML,
// TOML); it matches patterns and does not run or import anything.

#ifndef LIB_REGIONS_SOURCE_SCANNER_H_
#define LIB_REGIONS_SOURCE_SCANNER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

enum class SourceLanguage { kPython, kCpp, kMarkdown, kSettings };

enum class MentionKind {
  kRegistration,  // register_profiler_region(...), RegisterRegion({...})
  kDisabledRegistration,  // the same inside a comment
  kUse,                   // profiler_region("x"), @profile_region("x"), ...
  kDocumentation,         // in Markdown, or in a Python docstring
  kRequest,               // FASTVIDEO_TORCH_PROFILE_REGIONS=x,y
};

struct RegionMention {
  MentionKind kind;
  std::string name;  // short form; for a request possibly a pattern
  int line;          // from 1
};

// Returns the language by the path's extension, or nothing for other files.
std::optional<SourceLanguage> LanguageOfPath(absl::string_view path);

// Returns the mentions in `text`, in order of position. Placeholders in
// documentation ("your_region", "my_region") are left out. Thread-safe; text
// may hold any bytes.
std::vector<RegionMention> ScanSource(absl::string_view text,
                                      SourceLanguage language);

}  // namespace firstframe

#endif  // LIB_REGIONS_SOURCE_SCANNER_H_
