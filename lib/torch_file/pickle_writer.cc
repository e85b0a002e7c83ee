#include "lib/torch_file/pickle_writer.h"

#include "absl/strings/str_cat.h"

namespace firstframe {

void PickleWriter::Put(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    text_.push_back(static_cast<char>(value >> (8 * i)));
  }
}

void PickleWriter::Global(absl::string_view module, absl::string_view name) {
  absl::StrAppend(&text_, "c", module, "\n", name, "\n");
}

void PickleWriter::String(absl::string_view utf8) {
  text_ += 'X';
  Put(utf8.size(), 4);
  absl::StrAppend(&text_, utf8);
}

void PickleWriter::Int(int64_t value) {
  if (value >= 0 && value <= 0xFF) {
    text_ += 'K';
    Put(value, 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    text_ += 'J';
    Put(static_cast<uint64_t>(value), 4);
  } else {
    text_ += '\x8a';
    Put(8, 1);
    Put(static_cast<uint64_t>(value), 8);
  }
}

}  // namespace firstframe
