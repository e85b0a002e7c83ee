#include "lib/activation/report.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "lib/activation/report_parts.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// GitHub's workflow commands escape these three.
std::string EscapeCommand(absl::string_view text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}

}  // namespace

// Names may hold anything that JSON can say; a terminal gets valid UTF-8
// without control characters.
std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = Utf8SequenceLength(text);
    if (length == 0) {
      length = 1;
      out += "\xEF\xBF\xBD";
    } else if (length == 1 &&
               (static_cast<uint8_t>(text[0]) < ' ' || text[0] == '\x7F')) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length);
  }
  return out;
}

absl::string_view FireReasonName(FireReason reason) {
  switch (reason) {
    case FireReason::kNone:
      return "none";
    case FireReason::kHard:
      return "hard";
    case FireReason::kCoherentJump:
      return "coherent";
    case FireReason::kEnergyJump:
      return "energy";
    case FireReason::kCeiling:
      return "ceiling";
    case FireReason::kExact:
      return "exact";
  }
  return "";
}

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIdentical:
      return "identical";
    case Verdict::kSame:
      return "same";
    case Verdict::kDiffer:
      return "differ";
    case Verdict::kUndecided:
      return "undecided";
  }
  return "";
}

void WriteGithub(const Comparison& c, std::ostream& out) {
  if (c.divergence.first) {
    out << "::error title=First divergence::" << EscapeCommand(Explain(c))
        << "\n";
  }
  for (const std::string& trouble : c.trouble) {
    out << "::error title=Traces not comparable::" << EscapeCommand(trouble)
        << "\n";
  }
  for (const std::string& warning : c.warnings) {
    out << "::warning title=trace_diff::" << EscapeCommand(warning) << "\n";
  }
  if (c.verdict == Verdict::kSame || c.verdict == Verdict::kIdentical) {
    out << "::notice title=Traces agree::" << EscapeCommand(Explain(c)) << "\n";
  }
}

}  // namespace firstframe
