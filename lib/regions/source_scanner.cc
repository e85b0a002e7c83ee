#include "lib/regions/source_scanner.h"

#include <string.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/regex.h"
#include "lib/regions/comment_spans.h"
#include "lib/regions/region.h"

namespace firstframe {
namespace {

constexpr absl::string_view kSettingName = "FASTVIDEO_TORCH_PROFILE_REGIONS";

// A region's name inside a string literal; bytes, since sources may hold any.
constexpr char kName[] = R"(([A-Za-z0-9_.:/\x80-\xff-]+))";

// Latin-1, so that invalid UTF-8 matches too. Never freed: the patterns live as
// long as the process.
const RE2& Regex(const std::string& pattern) {
  auto* regex = new RE2(pattern, RE2::Latin1);
  return *regex;
}

// Call patterns: the first group is what is called, the second the name.
const RE2& PythonCalls() {
  static const RE2& regex = Regex(
      // The gap may hold the marks of a call commented out line by line.
      absl::StrCat(
          R"((register_profiler_region|profiler_region|profile_region|)",
          R"([A-Za-z_]*(?:profiler|controller)[A-Za-z_]*\.region)\()",
          R"([\s#]*(?:name\s*=\s*)?["'])", kName, R"(["'])"));
  return regex;
}

const RE2& CppCalls() {
  static const RE2& regex =
      Regex(absl::StrCat(R"((RegisterRegion|FF_PROFILE_REGION|ProfiledCall|)",
                         R"(ProfilerRegion(?:\s+[A-Za-z_][A-Za-z0-9_]*)?)[({])",
                         R"([\s{/]*(?:\.name\s*=\s*)?")", kName, R"(")"));
  return regex;
}

const RE2& SpanLiterals() {
  static const RE2& regex =
      Regex(absl::StrCat(R"(["']fastvideo\.region::)", kName, R"(["'])"));
  return regex;
}

const RE2& LongNames() {
  static const RE2& regex = Regex(R"(\b(profiler_region_[A-Za-z0-9_]+))");
  return regex;
}

const RE2& Requests() {
  static const RE2& regex =
      Regex(R"(FASTVIDEO_TORCH_PROFILE_REGIONS)"
            R"((?:["']?\]?\s*[=:,]\s*["']([A-Za-z0-9_*?!,\[\] -]*)["'])"
            R"(|=([A-Za-z0-9_*?!,-]+)))");
  return regex;
}

struct RawMention {
  MentionKind kind;
  std::string name;
  size_t offset;
};

bool IsPlaceholder(absl::string_view name) {
  return absl::StartsWith(name, "your_") || absl::StartsWith(name, "my_");
}

void FindCalls(absl::string_view text, const RE2& calls,
               std::vector<RawMention>* out) {
  re2::StringPiece rest = ToRe2(text);
  re2::StringPiece called, name;
  while (RE2::FindAndConsume(&rest, calls, &called, &name)) {
    const bool registers =
        absl::StartsWithIgnoreCase(FromRe2(called), "regist");
    out->push_back({registers ? MentionKind::kRegistration : MentionKind::kUse,
                    ShortRegionName(FromRe2(name)),
                    static_cast<size_t>(called.data() - text.data())});
  }
}

void FindNames(absl::string_view text, const RE2& names, MentionKind kind,
               std::vector<RawMention>* out) {
  re2::StringPiece rest = ToRe2(text);
  re2::StringPiece name;
  while (RE2::FindAndConsume(&rest, names, &name)) {
    out->push_back({kind, ShortRegionName(FromRe2(name)),
                    static_cast<size_t>(name.data() - text.data())});
  }
}

void FindRequests(absl::string_view text, std::vector<RawMention>* out) {
  re2::StringPiece rest = ToRe2(text);
  re2::StringPiece quoted, bare;
  while (RE2::FindAndConsume(&rest, Requests(), &quoted, &bare)) {
    const re2::StringPiece value = quoted.data() != nullptr ? quoted : bare;
    for (absl::string_view entry : absl::StrSplit(FromRe2(value), ',')) {
      std::string name = ShortRegionName(entry);
      if (name.empty() || name[0] == '-' || name[0] == '!') continue;
      if (name == "all") continue;
      out->push_back({MentionKind::kRequest, std::move(name),
                      static_cast<size_t>(value.data() - text.data())});
    }
  }
}

// Documentation: names in their long form, wherever they stand, and calls in
// examples. A long name that is part of a setting counts once, as a request.
void FindDocumentation(absl::string_view text, std::vector<RawMention>* out) {
  std::vector<RawMention> found;
  FindNames(text, LongNames(), MentionKind::kDocumentation, &found);
  FindCalls(text, PythonCalls(), &found);
  for (RawMention& mention : found) {
    mention.kind = MentionKind::kDocumentation;
    const size_t line_begin = text.rfind('\n', mention.offset);
    const size_t begin =
        line_begin == absl::string_view::npos ? 0 : line_begin + 1;
    const absl::string_view before = text.substr(begin, mention.offset - begin);
    if (absl::StrContains(before, kSettingName)) continue;
    if (IsPlaceholder(mention.name)) continue;
    out->push_back(std::move(mention));
  }
}

// A mention in a comment is only worth a note when it is a registration; one in
// a docstring documents.
void ApplySpans(absl::string_view text, SourceLanguage language,
                std::vector<RawMention>* mentions) {
  if (mentions->empty()) return;
  if (language != SourceLanguage::kPython && language != SourceLanguage::kCpp) {
    return;
  }
  const std::vector<TextSpan> spans = language == SourceLanguage::kPython
                                          ? PythonCommentSpans(text)
                                          : CppCommentSpans(text);
  std::vector<RawMention> kept;
  for (RawMention& mention : *mentions) {
    const TextSpan* span = FindSpan(spans, mention.offset);
    if (span != nullptr && span->kind == TextSpan::Kind::kComment) {
      if (mention.kind == MentionKind::kRegistration) {
        mention.kind = MentionKind::kDisabledRegistration;
      } else if (mention.kind != MentionKind::kRequest) {
        continue;
      }
    } else if (span != nullptr && mention.kind != MentionKind::kRequest) {
      mention.kind = MentionKind::kDocumentation;
      if (IsPlaceholder(mention.name)) continue;
    }
    kept.push_back(std::move(mention));
  }
  *mentions = std::move(kept);
}

}  // namespace

std::optional<SourceLanguage> LanguageOfPath(absl::string_view path) {
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  if (dot == absl::string_view::npos ||
      (slash != absl::string_view::npos && dot < slash)) {
    return std::nullopt;
  }
  const absl::string_view ext = path.substr(dot + 1);
  const auto any = [&](std::initializer_list<absl::string_view> list) {
    return std::find(list.begin(), list.end(), ext) != list.end();
  };
  if (any({"py", "pyi"})) return SourceLanguage::kPython;
  if (any({"cc", "cpp", "cxx", "h", "hpp", "hh", "cu", "cuh"})) {
    return SourceLanguage::kCpp;
  }
  if (any({"md", "rst", "mdx"})) return SourceLanguage::kMarkdown;
  if (any({"sh", "bash", "yaml", "yml", "toml", "env", "sbatch", "slurm"})) {
    return SourceLanguage::kSettings;
  }
  return std::nullopt;
}

std::vector<RegionMention> ScanSource(absl::string_view text,
                                      SourceLanguage language) {
  std::vector<RegionMention> result;
  // Every pattern below holds one of these words: most files end here.
  const auto holds = [&](absl::string_view word) {
    return memmem(text.data(), text.size(), word.data(), word.size()) !=
           nullptr;
  };
  const bool has_request = holds(kSettingName);
  const bool has_name =
      language != SourceLanguage::kSettings &&
      (holds("region(") || holds("Region") || holds("profiler_region") ||
       holds("fastvideo.region::") || holds("FF_PROFILE_REGION"));
  if (!has_request && !has_name) return result;

  std::vector<RawMention> mentions;
  if (has_request) FindRequests(text, &mentions);
  if (has_name) {
    switch (language) {
      case SourceLanguage::kPython:
        FindCalls(text, PythonCalls(), &mentions);
        FindNames(text, SpanLiterals(), MentionKind::kUse, &mentions);
        break;
      case SourceLanguage::kCpp:
        FindCalls(text, CppCalls(), &mentions);
        FindNames(text, SpanLiterals(), MentionKind::kUse, &mentions);
        break;
      case SourceLanguage::kMarkdown:
        FindDocumentation(text, &mentions);
        break;
      case SourceLanguage::kSettings:
        break;
    }
  }
  ApplySpans(text, language, &mentions);
  std::stable_sort(mentions.begin(), mentions.end(),
                   [](const RawMention& a, const RawMention& b) {
                     return a.offset < b.offset;
                   });
  int line = 1;
  size_t at = 0;
  for (RawMention& mention : mentions) {
    line += static_cast<int>(
        std::count(text.begin() + at, text.begin() + mention.offset, '\n'));
    at = mention.offset;
    result.push_back({mention.kind, std::move(mention.name), line});
  }
  return result;
}

}  // namespace firstframe
