#include "lib/activation/trace_pair.h"

#include <algorithm>
#include <utility>

#include "lib/activation/equal_line.h"
#include "lib/activation/trace_reader.h"

namespace firstframe {
namespace {

// Shorter runs are cheaper as rows. And whoever looks a few rows around one
// that differs (the confirmation of a jump) then finds rows.
constexpr int kRowsBeforeRun = 32;
// So that the keys of a run are no large allocation.
constexpr size_t kMaxRunLines = size_t{1} << 16;

}  // namespace

class TracePairReader {
 public:
  TracePairReader(TraceReader* a, TraceReader* b, EqualLines equal_lines)
      : a_(*a), b_(*b), equal_lines_(equal_lines) {}

  // Reads what both have lines for.
  void Read(TracePair* out) {
    int equal = 0;  // lines in a row
    while (!a_.AtEnd() && !b_.AtEnd()) {
      if (equal_lines_ == EqualLines::kRuns && equal >= kRowsBeforeRun &&
          ReadRun()) {
        continue;
      }
      if (ReadEqualRow()) {
        out->has_unread = true;
        ++equal;
        continue;
      }
      equal = 0;
      a_.ReadLine();
      b_.ReadLine();
    }
    out->runs = std::move(runs_);
  }

 private:
  struct Line {
    size_t size = 0;
    uint32_t key = 0;
    int32_t step = kNoStep;
  };

  // Reads key and step of the plain line that both readers stand before. False
  // when they differ, or when it needs a closer look. So does the first of its
  // name in a segment: alignment looks at the shape and the numbers of those.
  bool ReadHead(Line* line) {
    const auto [size, colons] = FindEqualLine(
        a_.next_, b_.next_, std::min(a_.end_ - a_.next_, b_.end_ - b_.next_));
    // Another number of keys than the layout's: a run or rank may be one.
    if (size == 0 || a_.next_[size - 1] != '}' || colons != a_.layout_colons_) {
      return false;
    }
    line->size = size;
    return a_.ReadHead(a_.next_, a_.next_ + size, &line->key, &line->step) &&
           a_.HasReadInSegment(line->key) && b_.HasReadInSegment(line->key) &&
           !a_.BeginsRun(line->key, line->step) &&
           !b_.BeginsRun(line->key, line->step);
  }

  // Whether the line before had neither rank nor run, so that one without them
  // is of the same segment.
  static bool IsPlain(const TraceReader& reader) {
    return reader.rank_text_.empty() && reader.run_text_.empty();
  }

  bool ReadEqualRow() {
    Line line;
    if (equal_lines_ == EqualLines::kParsed || !a_.layout_has_head_ ||
        !IsPlain(a_) || !IsPlain(b_) || !ReadHead(&line)) {
      return false;
    }
    TraceRow row = TraceReader::kEmptyRow;
    row.key = line.key;
    row.step = line.step;
    row.SetUnread(static_cast<uint32_t>(a_.table_.rows.size()));
    for (TraceReader* const reader : {&a_, &b_}) {
      row.offset = static_cast<uint64_t>(reader->next_ - reader->begin_);
      ++reader->table_.num_lines;
      reader->next_ += line.size + 1;
      reader->AddRow(row);
    }
    return true;
  }

  // Reads equal lines up to the first that is not, or that begins a segment.
  // False when there are none.
  bool ReadRun() {
    if (a_.table_.segments.size() > 1 || b_.table_.segments.size() > 1) {
      return false;
    }
    keys_.clear();
    EqualRun run;
    Line line;
    while (keys_.size() < kMaxRunLines && ReadHead(&line)) {
      a_.NoteStep(line.key, line.step);
      b_.NoteStep(line.key, line.step);
      if (run.steps.empty() || run.steps.back().step != line.step) {
        run.steps.push_back({static_cast<uint32_t>(keys_.size()), line.step});
      }
      keys_.push_back(line.key);
      a_.NoteOrder(line.key);
      a_.next_ += line.size + 1;
      b_.next_ += line.size + 1;
    }
    if (keys_.empty()) return false;
    b_.last_key_ = a_.last_key_;
    run.row_a = static_cast<uint32_t>(a_.table_.rows.size());
    run.row_b = static_cast<uint32_t>(b_.table_.rows.size());
    run.keys = keys_;
    a_.table_.num_lines += static_cast<int64_t>(keys_.size());
    b_.table_.num_lines += static_cast<int64_t>(keys_.size());
    runs_.push_back(std::move(run));
    return true;
  }

  TraceReader& a_;
  TraceReader& b_;
  const EqualLines equal_lines_;
  std::vector<uint32_t> keys_;  // of the run that is being read
  std::vector<EqualRun> runs_;
};

TracePair ReadTracePair(absl::string_view a, std::string name_a,
                        absl::string_view b, std::string name_b,
                        EqualLines equal_lines, TraceNames* names) {
  TraceReader left(a, std::move(name_a), names);
  TraceReader right(b, std::move(name_b), names);
  TracePair pair;
  TracePairReader(&left, &right, equal_lines).Read(&pair);
  pair.a = left.Finish();
  pair.b = right.Finish();
  return pair;
}

}  // namespace firstframe
