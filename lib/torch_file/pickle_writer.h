// The part of Python's pickle protocol 2 that a .pt file needs.
//
// Format: Lib/pickletools.py of CPython 3.12.

#ifndef LIB_TORCH_FILE_PICKLE_WRITER_H_
#define LIB_TORCH_FILE_PICKLE_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

// Each call appends the instructions that push one object, or combine those on
// the stack. Thread-compatible.
class PickleWriter {
 public:
  PickleWriter() : text_("\x80\x02") {}

  // Pushes MODULE.NAME.
  void Global(absl::string_view module, absl::string_view name);
  void String(absl::string_view utf8);
  void Int(int64_t value);
  void False() { text_ += '\x89'; }
  void Mark() { text_ += '('; }
  void TupleFromMark() { text_ += 't'; }
  void EmptyTuple() { text_ += ')'; }
  void EmptyDict() { text_ += '}'; }
  void SetItemsFromMark() { text_ += 'u'; }
  // Calls the function below the top with the tuple on top.
  void Reduce() { text_ += 'R'; }
  // Replaces the id on top with what the unpickler keeps under it.
  void PersistentId() { text_ += 'Q'; }

  // Returns the whole pickle.
  std::string Finish() && {
    text_ += '.';
    return std::move(text_);
  }

 private:
  void Put(uint64_t value, int bytes);

  std::string text_;
};

}  // namespace firstframe

#endif  // LIB_TORCH_FILE_PICKLE_WRITER_H_
