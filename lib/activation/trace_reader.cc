#include "lib/activation/trace_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/trace_fields.h"
#include "lib/base/huge_pages.h"

namespace firstframe {
namespace {

using json_scan::SkipSpace;
using json_scan::SkipString;
using json_scan::SkipValue;
using trace_fields::ReadStep;
using trace_fields::ReadValue;
using trace_fields::Unquoted;

constexpr uint16_t kNoSegment = 0xFFFF;

const char* FindLineEnd(const char* p, const char* end) {
  const void* const found = std::memchr(p, '\n', end - p);
  return found == nullptr ? end : static_cast<const char*>(found);
}

}  // namespace

const TraceRow TraceReader::kEmptyRow = [] {
  TraceRow row;
  for (int i = 0; i < kNumTraceValues; ++i) {
    row.SetOdd(static_cast<TraceValue>(i), ValueKind::kMissing);
  }
  return row;
}();

TraceReader::TraceReader(absl::string_view text, std::string name,
                         TraceNames* names)
    : names_(*names),
      begin_(text.data()),
      next_(text.data()),
      end_(text.data() + text.size()) {
  table_.name = std::move(name);
  table_.text = text;
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) next_ += 3;
  segment_ = InternSegment();
  Reserve();
}

// Growing by doubling would hold one and a half times the rows for a moment.
void TraceReader::Reserve() {
  const int64_t sampled = std::min<int64_t>(end_ - next_, 1 << 16);
  const int64_t lines = std::count(next_, next_ + sampled, '\n');
  if (lines == 0) return;
  const double bytes_per_line = static_cast<double>(sampled) / lines;
  const double lines_left = (end_ - next_) / bytes_per_line;
  table_.rows.reserve(static_cast<size_t>(lines_left * 1.01) + 64);
  // Short of the estimate: a huge page that stays half empty is not worth it.
  AdviseHugePages(table_.rows.data(), static_cast<size_t>(lines_left * 0.95) *
                                          sizeof(table_.rows[0]));
}

uint16_t TraceReader::InternSegment() {
  TraceSegment segment;
  segment.generation = generation_;
  segment.run = json_scan::DecodeString(Unquoted(run_text_));
  if (int rank = 0; absl::SimpleAtoi(Unquoted(rank_text_), &rank)) {
    segment.rank = rank;
  }
  auto& all = table_.segments;
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i] == segment) return static_cast<uint16_t>(i);
  }
  if (all.size() >= 0xFFFF) return 0xFFFE;  // the rest share the last one
  all.push_back(std::move(segment));
  return static_cast<uint16_t>(all.size() - 1);
}

void TraceReader::SelectSegment(absl::string_view rank, absl::string_view run) {
  if (rank == rank_text_ && run == run_text_) return;
  rank_text_ = std::string(rank);
  run_text_ = std::string(run);
  segment_ = InternSegment();
}

void TraceReader::AddRow(const TraceRow& row) {
  if (BeginsRun(row.key, row.step)) {
    ++generation_;
    segment_ = InternSegment();
  }
  NoteStep(row.key, row.step);
  NoteOrder(row.key);
  if ((row.flags & TraceRow::kUnread) == 0) {
    if (row.key >= read_in_.size()) read_in_.resize(row.key + 64, kNoSegment);
    read_in_[row.key] = segment_;
  }
  table_.rows.push_back(row);
  table_.rows.back().segment = segment_;
}

const char* TraceReader::ReadMember(absl::string_view key, const char* p,
                                    const char* end, RowState* state,
                                    Piece* piece) {
  const auto text_until = [&](const char* behind) {
    return absl::string_view(p, behind == nullptr ? 0 : behind - p);
  };
  if ((key == "module" || key == "tensor") && p < end && *p == '"') {
    const char* const behind = SkipString(p, end);
    if (behind == nullptr) return nullptr;
    const bool is_module = key == "module";
    (is_module ? state->module : state->tensor) = Unquoted(text_until(behind));
    bool& has = is_module ? state->has_module : state->has_tensor;
    state->has_duplicate |= has;
    has = true;
    piece->slot = is_module ? Slot::kModule : Slot::kTensor;
    return behind;
  }
  if (key == "step") {
    piece->slot = Slot::kStep;
    return ReadStep(p, end, &state->row.step);
  }
  for (int i = 0; i < kNumTraceValues; ++i) {
    const TraceValue value = static_cast<TraceValue>(i);
    if (key != kTraceValueNames[i]) continue;
    piece->slot = Slot::kNumber;
    piece->value = value;
    state->has_duplicate |= state->row.Kind(value) != ValueKind::kMissing;
    return ReadValue(p, end, value, &state->row);
  }
  Habit scratch;  // the key is not known yet
  if (key == "shape") {
    piece->slot = Slot::kShape;
    return ReadShape(p, end, &scratch, &state->row);
  }
  if (key == "dtype") {
    piece->slot = Slot::kDtype;
    return ReadDtype(p, end, &scratch, &state->row);
  }
  const char* const behind = SkipValue(p, end);
  if (key == "rank") {
    piece->slot = Slot::kRank;
    state->rank = text_until(behind);
  } else if (key == "run") {
    piece->slot = Slot::kRun;
    state->run = text_until(behind);
  } else if (key == "trace_header") {
    state->is_header = true;
  } else {
    state->row.flags |= TraceRow::kHasExtras;
  }
  return behind;
}

const char* TraceReader::ReadObject(const char* const begin, const char* end,
                                    RowState* state) {
  learning_.clear();
  const char* literal = begin;
  const char* p = SkipSpace(begin + 1, end);
  if (p < end && *p == '}') return p + 1;
  while (true) {
    const char* const key_end = SkipString(p, end);
    if (key_end == nullptr) return nullptr;
    const absl::string_view key = Unquoted(absl::string_view(p, key_end - p));
    p = SkipSpace(key_end, end);
    if (p >= end || *p != ':') return nullptr;
    p = SkipSpace(p + 1, end);
    Piece piece;
    piece.literal.assign(literal, p - literal);
    p = ReadMember(key, p, end, state, &piece);
    if (p == nullptr) return nullptr;
    learning_.push_back(std::move(piece));
    literal = p;
    p = SkipSpace(p, end);
    if (p >= end) return nullptr;
    if (*p == '}') break;
    if (*p != ',') return nullptr;
    p = SkipSpace(p + 1, end);
  }
  ++p;
  layout_tail_.assign(literal, p - literal);
  if (state->has_module && !state->has_duplicate) {
    layout_ = learning_;
    layout_has_extras_ =
        std::any_of(layout_.begin(), layout_.end(),
                    [](const Piece& x) { return x.slot == Slot::kExtra; });
  } else {
    layout_.clear();
  }
  ++layout_number_;
  layout_colons_ = static_cast<int>(std::count(begin, p, ':'));
  layout_has_head_ =
      layout_.size() >= 3 && layout_[0].slot == Slot::kModule &&
      layout_[1].slot == Slot::kTensor && layout_[2].slot == Slot::kStep &&
      std::none_of(layout_.begin(), layout_.end(), [](const Piece& x) {
        return x.slot == Slot::kRank || x.slot == Slot::kRun;
      });
  return p;
}

void TraceReader::AddObject(RowState* state, absl::string_view text) {
  if (state->is_header) {
    table_.headers.emplace_back(text);
    // A header begins a run, unless it is the first thing in the file.
    if (!table_.rows.empty()) ++generation_;
    segment_ = InternSegment();
    return;
  }
  if (!state->has_module) {
    ++table_.damage.foreign;
    return;
  }
  if (state->has_duplicate) ++table_.damage.duplicate_keys;
  SelectSegment(state->rank, state->run);
  state->row.key = names_.InternKey(state->module,
                                    state->has_tensor ? state->tensor : "out");
  state->row.offset = static_cast<uint64_t>(text.data() - begin_);
  AddRow(state->row);
}

void TraceReader::ReadLineSlowly(const char* p, const char* end, bool is_last) {
  bool has_object = false;
  bool is_torn = false;
  while ((p = SkipSpace(p, end)) < end) {
    RowState state;
    const char* const behind = *p == '{' ? ReadObject(p, end, &state) : nullptr;
    if (behind != nullptr) {
      // Inside of a torn record, an object without a module is a part of it.
      if (!is_torn || state.has_module || state.is_header) {
        AddObject(&state, absl::string_view(p, behind - p));
      }
      if (has_object || is_torn) ++table_.damage.glued;
      has_object = true;
      p = behind;
      continue;
    }
    if (!is_torn) {
      // Another JSON value alone on its line is foreign, not torn.
      const char* const value = *p == '{' ? nullptr : SkipValue(p, end);
      if (value != nullptr && SkipSpace(value, end) == end && !has_object) {
        ++table_.damage.foreign;
        return;
      }
      is_torn = true;
      ++table_.damage.torn;
      if (table_.damage.first_torn_line == 0) {
        table_.damage.first_torn_line = table_.num_lines;
      }
      table_.damage.torn_at_end = is_last;
    }
    const void* const next = std::memchr(p + 1, '{', end - p - 1);
    if (next == nullptr) return;
    p = static_cast<const char*>(next);
  }
}

void TraceReader::ReadLine() {
  const char* const p = next_;
  ++table_.num_lines;
  TraceRow row = kEmptyRow;
  const char* q = ReadByLayout(p, end_, &row);
  if (q != nullptr) {
    if (q < end_ && *q == '\r') ++q;
    if (q == end_ || *q == '\n') {
      AddRow(row);
      next_ = q == end_ ? q : q + 1;
      return;
    }
  }
  const char* const line_end = FindLineEnd(p, end_);
  next_ = line_end == end_ ? end_ : line_end + 1;
  ReadLineSlowly(p, line_end, line_end == end_);
}

void TraceReader::ReadUnread(TraceRow* row) {
  const char* const here = next_;
  next_ = begin_ + row->offset;
  table_.rows.clear();
  ReadLine();
  next_ = here;
  row->flags = 0;
  if (table_.rows.empty()) return;
  const TraceRow& full = table_.rows.front();
  row->values = full.values;
  row->shape = full.shape;
  row->dtype = full.dtype;
  row->flags = full.flags;
}

TraceTable TraceReader::Finish() {
  while (!AtEnd()) ReadLine();
  return std::move(table_);
}

void ReadUnreadRows(const std::vector<uint32_t>& rows, TraceNames* names,
                    TraceTable* table) {
  if (rows.empty()) return;
  TraceReader reader(table->text, table->name, names);
  for (const uint32_t row : rows) {
    if ((table->rows[row].flags & TraceRow::kUnread) == 0) continue;
    reader.ReadUnread(&table->rows[row]);
  }
}

TraceTable ReadTrace(absl::string_view text, std::string name,
                     TraceNames* names) {
  return TraceReader(text, std::move(name), names).Finish();
}

}  // namespace firstframe
