#include "lib/trace/json_rewrite.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/trace/json_scan.h"

namespace firstframe {
namespace {

constexpr int kMaxDepth = 64;

// Whether `token` is a number as RFC 8259 writes it.
bool IsStrictNumber(absl::string_view token) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t from = i;
    while (i < token.size() && absl::ascii_isdigit(token[i])) ++i;
    return i > from;
  };
  if (i < token.size() && token[i] == '-') ++i;
  const size_t first = i;
  if (!digits()) return false;
  if (token[first] == '0' && i > first + 1) return false;
  if (i < token.size() && token[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < token.size() && (token[i] == 'e' || token[i] == 'E')) {
    ++i;
    if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == token.size();
}

void AppendToken(absl::string_view token, std::string* out) {
  if (token == "true" || token == "false" || token == "null") {
    absl::StrAppend(out, token);
  } else if (IsStrictNumber(token)) {
    // A double that overflows is not one that strict readers take.
    double value = 0;
    if (absl::SimpleAtod(token, &value) && value - value == 0) {
      absl::StrAppend(out, token);
    } else {
      absl::StrAppend(out, "null");
    }
  } else {
    int64_t number = 0;  // leading zeros, a plus sign
    if (absl::SimpleAtoi(token, &number)) {
      absl::StrAppend(out, number);
    } else {
      absl::StrAppend(out, "null");
    }
  }
}

class Rewriter {
 public:
  Rewriter(JsonEditor edit, std::string* out) : edit_(edit), out_(out) {}

  void Value(absl::string_view raw, std::string& path, int depth) {
    if (raw.empty() || depth > kMaxDepth) {
      *out_ += "null";
    } else if (raw[0] == '"') {
      const absl::string_view text = UnquoteJson(raw);
      AppendJsonString(DecodeJsonString(text), out_);
    } else if (raw[0] == '{') {
      Object(raw, path, depth);
    } else if (raw[0] == '[') {
      Array(raw, path, depth);
    } else {
      AppendToken(raw, out_);
    }
  }

 private:
  void Object(absl::string_view raw, std::string& path, int depth) {
    *out_ += '{';
    bool first = true;
    JsonOddities ignored;
    VisitJsonObject(raw, &ignored,
                    [&](absl::string_view key, absl::string_view value) {
                      const size_t length = path.size();
                      if (!path.empty()) path += '.';
                      absl::StrAppend(&path, key);
                      const JsonEdit edit = edit_(path, value);
                      if (edit.action != JsonEdit::Action::kDrop) {
                        if (!first) *out_ += ", ";
                        first = false;
                        AppendJsonString(DecodeJsonString(key), out_);
                        *out_ += ": ";
                        Edited(edit, value, path, depth);
                      }
                      path.resize(length);
                      return true;
                    });
    *out_ += '}';
  }

  void Array(absl::string_view raw, std::string& path, int depth) {
    *out_ += '[';
    bool first = true;
    const char* p = raw.data() + 1;
    const char* const end = raw.data() + raw.size();
    JsonOddities ignored;
    for (;;) {
      p = SkipJsonSpace(p, end);
      if (p == end || *p == ']') break;
      if (*p == ',') {
        ++p;
        continue;
      }
      const char* const after = SkipJsonValue(p, end, &ignored);
      if (after == nullptr || after == p) break;
      const absl::string_view value(p, after - p);
      const JsonEdit edit = edit_(path, value);
      if (edit.action != JsonEdit::Action::kDrop) {
        if (!first) *out_ += ", ";
        first = false;
        Edited(edit, value, path, depth);
      }
      p = after;
    }
    *out_ += ']';
  }

  void Edited(const JsonEdit& edit, absl::string_view value, std::string& path,
              int depth) {
    if (edit.action == JsonEdit::Action::kReplace) {
      *out_ += edit.json;
    } else {
      Value(value, path, depth + 1);
    }
  }

  const JsonEditor edit_;
  std::string* const out_;
};

}  // namespace

void AppendCleanJson(absl::string_view raw, std::string* out) {
  AppendEditedJson(
      raw, [](absl::string_view, absl::string_view) { return JsonEdit{}; },
      out);
}

void AppendEditedJson(absl::string_view raw, JsonEditor edit,
                      std::string* out) {
  std::string path;
  Rewriter(edit, out).Value(raw, path, 0);
}

}  // namespace firstframe
