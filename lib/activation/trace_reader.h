// Reads FastVideo-style JSONL traces.
//
// Made for files of gigabytes: lines are parsed in place against the layout and
// the order of names seen before; trace_pair.h skips what two files have in
// common. Odd input is survived: torn and glued lines,
// NaN tokens, BOM, CRLF, blank lines, any key order and spacing, unknown keys,
// steps as strings or floats. What was odd is counted in TraceTable::damage.

#ifndef LIB_ACTIVATION_TRACE_READER_H_
#define LIB_ACTIVATION_TRACE_READER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// Reads the lines of one text into a table. Thread-compatible; `names` and the
// text must outlive the reader and its table.
class TraceReader {
 public:
  TraceReader(absl::string_view text, std::string name, TraceNames* names);

  bool AtEnd() const { return next_ >= end_; }
  // Reads one line.
  void ReadLine();
  // Reads the rest and returns the table.
  TraceTable Finish();

  // Reads the record of an unread row of this text, in place. Does not move.
  void ReadUnread(TraceRow* row);

 private:
  friend class TracePairReader;  // steps over lines that two texts share

  enum class Slot : uint8_t {
    kModule,
    kTensor,
    kStep,
    kNumber,
    kShape,
    kDtype,
    kRank,
    kRun,
    kExtra,
  };
  // A piece of the layout: the text before a value, and what the value is.
  struct Piece {
    std::string literal;
    Slot slot = Slot::kExtra;
    TraceValue value = kAbsMean;
  };
  // What was seen of a key: what most likely comes next.
  struct Habit {
    uint32_t next_key = 0;
    uint32_t shape = 0;
    uint8_t dtype = 0;
    std::string shape_text;
    std::string dtype_text;
    // The last step, to notice when it falls back.
    uint16_t segment = 0;
    int32_t step = kNoStep;
    // The last equal line up to and with the byte behind its step, and the
    // layout it was read by.
    std::string head;
    int32_t head_step = kNoStep;
    uint32_t head_layout = 0;
  };
  struct RowState {
    TraceRow row = kEmptyRow;
    absl::string_view module, tensor;  // as between the quotes
    bool has_module = false;
    bool has_tensor = false;
    bool has_duplicate = false;
    bool is_header = false;
    absl::string_view rank, run;  // as in the text
  };
  static const TraceRow kEmptyRow;

  // Reads a record of exactly the layout seen last; nullptr when it differs.
  const char* ReadByLayout(const char* p, const char* end, TraceRow* row);
  const char* ReadKeyText(const char* p, const char* end,
                          const std::string& expected, bool* is_expected,
                          absl::string_view* text);
  const char* ReadShape(const char* p, const char* end, Habit* habit,
                        TraceRow* row);
  const char* ReadDtype(const char* p, const char* end, Habit* habit,
                        TraceRow* row);
  // Reads any JSON object; learns its layout when it is a record.
  const char* ReadObject(const char* p, const char* end, RowState* state);
  const char* ReadMember(absl::string_view key, const char* p, const char* end,
                         RowState* state, Piece* piece);

  void ReadLineSlowly(const char* p, const char* end, bool is_last);
  void AddObject(RowState* state, absl::string_view text);
  void AddRow(const TraceRow& row);
  // Whether a row's step falls back: another run was appended to the file.
  bool BeginsRun(uint32_t key, int32_t step) {
    if (step == kNoStep) return false;
    const Habit& habit = HabitOf(key);
    return habit.step != kNoStep && step < habit.step &&
           habit.segment == segment_;
  }
  void NoteStep(uint32_t key, int32_t step) {
    if (step == kNoStep) return;
    Habit& habit = HabitOf(key);
    habit.step = step;
    habit.segment = segment_;
  }
  // Learns which key followed the last one.
  void NoteOrder(uint32_t key) {
    HabitOf(last_key_).next_key = key;
    last_key_ = key;
  }
  // Reads key and step of a line by the layout; false when it has another.
  bool ReadHead(const char* p, const char* end, uint32_t* key, int32_t* step);
  void SelectSegment(absl::string_view rank, absl::string_view run);
  // Whether a row of `key` was read in full since the segment began.
  bool HasReadInSegment(uint32_t key) const {
    return key < read_in_.size() && read_in_[key] == segment_;
  }
  uint16_t InternSegment();
  Habit& HabitOf(uint32_t key) {
    if (key >= habits_.size()) habits_.resize(key + 64);
    return habits_[key];
  }
  void Reserve();

  TraceNames& names_;
  TraceTable table_;
  const char* const begin_;
  const char* next_;
  const char* const end_;

  std::vector<Piece> layout_;
  std::string layout_tail_;
  bool layout_has_extras_ = false;
  // Begins with module, tensor and step, and has no rank or run: lines can be
  // known by their heads.
  bool layout_has_head_ = false;
  uint32_t layout_number_ = 0;  // counts the layouts
  int layout_colons_ = 0;       // in the text of the record it was learned from
  std::vector<Piece> learning_;

  std::vector<Habit> habits_;      // by key
  std::vector<uint16_t> read_in_;  // by key: segment of the last row in full
  uint32_t last_key_ = 0;
  uint32_t generation_ = 0;
  uint16_t segment_ = 0;
  std::string rank_text_, run_text_;  // of the current segment
};

// Reads the unread rows among `rows` (by number), in place.
void ReadUnreadRows(const std::vector<uint32_t>& rows, TraceNames* names,
                    TraceTable* table);

// Reads one trace whole.
TraceTable ReadTrace(absl::string_view text, std::string name,
                     TraceNames* names);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_READER_H_
