// Bytes that edit a copy of a trace: whichever way equal lines are read, the
// findings must be the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "lib/activation/compare.h"
#include "lib/activation/trace_input.h"

namespace firstframe {
namespace {

// Gives the input's bytes; zeros past its end.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}
  bool AtEnd() const { return next_ == end_; }
  size_t Take(size_t limit) {
    return AtEnd() ? 0 : *next_++ % std::max<size_t>(limit, 1);
  }
  size_t TakeLine(size_t num_lines) {
    const size_t high = Take(256);
    return (high << 8 | Take(256)) % std::max<size_t>(num_lines, 1);
  }

 private:
  const uint8_t* next_;
  const uint8_t* const end_;
};

std::string Line(size_t module, size_t step, size_t value) {
  return absl::StrCat("{\"module\": \"blocks.", module / 3, ".", module % 3,
                      "\", \"tensor\": \"out\", \"step\": ",
                      step == 0 ? "null" : absl::StrCat(step),
                      ", \"abs_mean\": 1.", value,
                      ", \"std\": 2.5, \"shape\": [4, ", 1 + value % 2,
                      "], \"dtype\": \"torch.bfloat16\"}");
}

std::vector<std::string> Base(Bytes* bytes) {
  const size_t num_modules = 1 + bytes->Take(12), calls = 4 + bytes->Take(24);
  const bool has_steps = bytes->Take(2) != 0;
  std::vector<std::string> lines;
  for (size_t call = 0; call < calls; ++call) {
    for (size_t m = 0; m < num_modules; ++m) {
      lines.push_back(Line(m, has_steps ? 1 + call / 2 : 0, call % 5));
    }
  }
  return lines;
}

// Either side may be edited: what is special on the left must not be missed.
void Edit(Bytes* bytes, std::vector<std::string>* lines) {
  const size_t at = bytes->TakeLine(lines->size());
  std::string& line = (*lines)[at];
  switch (bytes->Take(12)) {
    case 0:
      line = Line(bytes->Take(40), bytes->Take(8), bytes->Take(10));
      break;
    case 1:
      absl::StrReplaceAll({{"\"std\": 2.5", "\"std\": 3.5"}}, &line);
      break;
    case 2:
      absl::StrReplaceAll({{"2.5", "NaN"}}, &line);
      break;
    case 3:
      lines->erase(lines->begin() + at);
      break;
    case 4:
      lines->insert(lines->begin() + at,
                    (*lines)[bytes->TakeLine(lines->size())]);
      break;
    case 5:
      std::swap(line, (*lines)[bytes->TakeLine(lines->size())]);
      break;
    case 6:
      lines->resize(at + 1);
      break;
    case 7:
      absl::StrReplaceAll({{"\"std\"", "\"rank\": 1, \"std\""}}, &line);
      break;
    case 8:
      absl::StrReplaceAll({{"\"std\"", "\"run\": \"r\", \"std\""}}, &line);
      break;
    case 9:
      line.resize(bytes->Take(line.size()));
      break;
    case 10:
      line += line;
      break;
    default:
      absl::StrReplaceAll({{"\"out\"", "\"out[0]\""}}, &line);
  }
  if (lines->empty()) lines->push_back("");
}

std::string Findings(const TraceInput& a, const TraceInput& b,
                     EqualLines equal_lines) {
  CompareOptions options;
  options.lenient = true;
  options.equal_lines = equal_lines;
  const auto c = CompareTraces(a, b, options);
  if (!c.ok()) return std::string(c.status().message());
  std::string out = absl::StrCat(
      static_cast<int>(c->verdict), " ", c->alignment.NumPaired(), " ",
      c->alignment.unmatched_a.size(), " ", c->alignment.unmatched_b.size(),
      " ", c->divergence.num_fired, " ", c->divergence.num_different, " ",
      c->divergence.num_compared, "\n", Explain(*c), "\n",
      absl::StrJoin(c->trouble, "\n"), "\n");
  for (const std::string& warning : c->warnings) {
    // Lints need the numbers of equal lines.
    if (warning.find("the same numbers for several") != std::string::npos) {
      continue;
    }
    absl::StrAppend(&out, warning, "\n");
  }
  return out;
}

}  // namespace
}  // namespace firstframe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using firstframe::EqualLines;
  firstframe::Bytes bytes(data, size);
  std::vector<std::string> left = firstframe::Base(&bytes);
  std::vector<std::string> right = left;
  for (int i = 0; i < 24 && !bytes.AtEnd(); ++i) {
    switch (bytes.Take(4)) {
      case 0:
        firstframe::Edit(&bytes, &left);
        break;
      case 1: {  // the same on both sides
        firstframe::Bytes again = bytes;
        firstframe::Edit(&bytes, &left);
        firstframe::Edit(&again, &right);
        break;
      }
      default:
        firstframe::Edit(&bytes, &right);
    }
  }
  const auto a =
      firstframe::TraceInput::FromString(absl::StrJoin(left, "\n") + "\n", "a");
  const auto b = firstframe::TraceInput::FromString(
      absl::StrJoin(right, "\n") + "\n", "b");
  const std::string parsed = firstframe::Findings(*a, *b, EqualLines::kParsed);
  for (const EqualLines way : {EqualLines::kRows, EqualLines::kRuns}) {
    const std::string found = firstframe::Findings(*a, *b, way);
    if (found == parsed) continue;
    std::fprintf(stderr, "parsed: %sotherwise: %s", parsed.c_str(),
                 found.c_str());
    std::abort();
  }
  return 0;
}

std::vector<std::string> FuzzSeeds() {
  return {
      std::string("\x0b\x14\x00\x02\x00\x90\x01", 7),
      std::string("\x05\x10\x01\x02\x00\x40\x04\x00\x02", 9),
      std::string("\x03\x17\x00\x01\x00\x30\x08\x02\x00\x50\x01", 11),
      // A row without a step among rows with steps.
      std::string(
          "\x52\x2f\xcd\x8d\x9b\x0f\x00\x00\x00\x89\x23\x26\xbc\xef\x60", 15),
      // A run that begins in an equal line.
      std::string("\x99\x1a\xa1\x51\x43\xc7\x00\xde\x7d\x6a\x7a\xcb\x3e\x14\x6c"
                  "\xc4\x14\x00\x00\x25\x00\x00\x00\x00\x6c\xc4\x44\x77\xd2",
                  29),
  };
}
