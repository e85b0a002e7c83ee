// Records of the layout seen last: what nearly every line of a file is.

#include <cstring>

#include "lib/activation/json_scan.h"
#include "lib/activation/trace_fields.h"
#include "lib/activation/trace_reader.h"

namespace firstframe {

using json_scan::SkipValue;
using trace_fields::Continues;
using trace_fields::ParseShape;
using trace_fields::ReadStep;
using trace_fields::ReadValue;
using trace_fields::Unquoted;

const char* TraceReader::ReadKeyText(const char* p, const char* end,
                                     const std::string& expected,
                                     bool* is_expected,
                                     absl::string_view* text) {
  if (p >= end || *p != '"') return nullptr;
  ++p;
  const size_t size = expected.size();
  if (static_cast<size_t>(end - p) > size && p[size] == '"' &&
      std::memcmp(p, expected.data(), size) == 0) {
    *text = absl::string_view(p, size);
    return p + size + 1;
  }
  *is_expected = false;
  const char* q = p;
  while (q < end && *q != '"') {
    if (*q == '\\' || static_cast<unsigned char>(*q) < 0x20) return nullptr;
    ++q;
  }
  if (q >= end) return nullptr;
  *text = absl::string_view(p, q - p);
  return q + 1;
}

const char* TraceReader::ReadShape(const char* p, const char* end, Habit* habit,
                                   TraceRow* row) {
  if (!habit->shape_text.empty() && Continues(p, end, habit->shape_text)) {
    row->shape = habit->shape;
    return p + habit->shape_text.size();
  }
  const char* const behind = SkipValue(p, end);
  if (behind == nullptr) return nullptr;
  const absl::string_view text(p, behind - p);
  Shape shape;
  if ((text.front() == '[' || text.front() == '"') &&
      ParseShape(text, &shape)) {
    row->shape = names_.InternShape(shape);
    habit->shape = row->shape;
    habit->shape_text = std::string(text);
  } else {
    row->flags |= TraceRow::kHasExtras;  // an error string, say
  }
  return behind;
}

const char* TraceReader::ReadDtype(const char* p, const char* end, Habit* habit,
                                   TraceRow* row) {
  if (!habit->dtype_text.empty() && Continues(p, end, habit->dtype_text)) {
    row->dtype = habit->dtype;
    return p + habit->dtype_text.size();
  }
  const char* const behind = SkipValue(p, end);
  if (behind == nullptr || *p != '"') return behind;
  const absl::string_view text(p, behind - p);
  row->dtype = names_.InternDtype(json_scan::DecodeString(Unquoted(text)));
  habit->dtype = row->dtype;
  habit->dtype_text = std::string(text);
  return behind;
}

const char* TraceReader::ReadByLayout(const char* p, const char* end,
                                      TraceRow* row) {
  if (layout_.empty()) return nullptr;
  const uint32_t guess = HabitOf(last_key_).next_key;
  const TraceNames::Key& expected = names_.key(guess);
  Habit* const habit = &HabitOf(guess);
  bool is_expected = true;
  absl::string_view module, tensor = "out";
  row->offset = static_cast<uint64_t>(p - begin_);
  for (const Piece& piece : layout_) {
    if (!Continues(p, end, piece.literal)) return nullptr;
    p += piece.literal.size();
    switch (piece.slot) {
      case Slot::kModule:
        p = ReadKeyText(p, end, expected.raw_module, &is_expected, &module);
        break;
      case Slot::kTensor:
        p = ReadKeyText(p, end, expected.raw_tensor, &is_expected, &tensor);
        break;
      case Slot::kStep:
        p = ReadStep(p, end, &row->step);
        break;
      case Slot::kNumber:
        p = ReadValue(p, end, piece.value, row);
        break;
      case Slot::kShape:
        p = ReadShape(p, end, habit, row);
        break;
      case Slot::kDtype:
        p = ReadDtype(p, end, habit, row);
        break;
      case Slot::kRank:
        if (!Continues(p, end, rank_text_)) return nullptr;
        p += rank_text_.size();
        break;
      case Slot::kRun:
        if (!Continues(p, end, run_text_)) return nullptr;
        p += run_text_.size();
        break;
      case Slot::kExtra:
        p = SkipValue(p, end);
        break;
    }
    if (p == nullptr) return nullptr;
  }
  if (!Continues(p, end, layout_tail_)) return nullptr;
  if (layout_has_extras_) row->flags |= TraceRow::kHasExtras;
  const bool is_guess = is_expected && expected.raw_tensor == tensor;
  row->key = is_guess ? guess : names_.InternKey(module, tensor);
  return p + layout_tail_.size();
}

bool TraceReader::ReadHead(const char* p, const char* end, uint32_t* key,
                           int32_t* step) {
  const uint32_t guess = HabitOf(last_key_).next_key;
  if (const Habit& habit = HabitOf(guess);
      habit.head_layout == layout_number_ && Continues(p, end, habit.head)) {
    *key = guess;
    *step = habit.head_step;
    return true;
  }
  const char* const begin = p;
  const TraceNames::Key& expected = names_.key(guess);
  bool is_expected = true;
  absl::string_view module, tensor;
  if (!Continues(p, end, layout_[0].literal)) return false;
  p += layout_[0].literal.size();
  p = ReadKeyText(p, end, expected.raw_module, &is_expected, &module);
  if (p == nullptr || !Continues(p, end, layout_[1].literal)) return false;
  p += layout_[1].literal.size();
  p = ReadKeyText(p, end, expected.raw_tensor, &is_expected, &tensor);
  if (p == nullptr || !Continues(p, end, layout_[2].literal)) return false;
  p += layout_[2].literal.size();
  *step = kNoStep;
  p = ReadStep(p, end, step);
  if (p == nullptr || p >= end) return false;
  ++p;  // so that the step 1 is not taken for the beginning of 12
  *key = is_expected ? guess : names_.InternKey(module, tensor);
  Habit& habit = HabitOf(*key);
  habit.head.assign(begin, p - begin);
  habit.head_step = *step;
  habit.head_layout = layout_number_;
  return true;
}

}  // namespace firstframe
