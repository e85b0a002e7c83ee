// Reads protobuf's wire format field by field, without generated code.
//
//   ProtoReader reader(message);
//   for (ProtoField field; reader.Next(&field);) {
//     if (field.number == 8) timestamp = field.value;
//     if (field.number == 23) name = field.bytes;
//   }
//   if (!reader.ok()) ...  // damaged
//
// Views point into the message. Thread-compatible.

#ifndef LIB_PERFETTO_PROTO_READER_H_
#define LIB_PERFETTO_PROTO_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace firstframe {

struct ProtoField {
  uint32_t number = 0;
  uint32_t wire_type = 0;   // 0 varint, 1 fixed64, 2 bytes, 5 fixed32
  uint64_t value = 0;       // of a number; 0 for bytes
  absl::string_view bytes;  // of a string or a sub-message
};

// Reads a varint at data[*at] and moves *at past it. False, with *at unchanged,
// when the data ends first or the varint is longer than ten bytes.
inline bool ReadVarint(absl::string_view data, size_t* at, uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 10 && *at + i < data.size(); ++i) {
    const auto byte = static_cast<unsigned char>(data[*at + i]);
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if ((byte & 0x80) == 0) {
      *at += i + 1;
      *value = result;
      return true;
    }
  }
  return false;
}

class ProtoReader {
 public:
  explicit ProtoReader(absl::string_view message) : data_(message) {}

  // Reads the next field; false at the end, or at damage (then !ok()).
  bool Next(ProtoField* field) {
    if (at_ == data_.size()) return false;
    *field = ProtoField{};
    uint64_t tag = 0;
    ok_ = ReadVarint(data_, &at_, &tag) && tag >> 3 != 0 && tag >> 32 == 0;
    if (!ok_) return false;
    field->number = static_cast<uint32_t>(tag >> 3);
    field->wire_type = tag & 7;
    uint64_t length = 0;
    switch (field->wire_type) {
      case 0:
        return ok_ = ReadVarint(data_, &at_, &field->value);
      case 1:
        return ok_ = Fixed(8, &field->value);
      case 5:
        return ok_ = Fixed(4, &field->value);
      case 2:
        ok_ = ReadVarint(data_, &at_, &length) && length <= data_.size() - at_;
        if (!ok_) return false;
        field->bytes = data_.substr(at_, length);
        at_ += length;
        return true;
      default:
        return ok_ = false;  // groups are not used
    }
  }

  bool ok() const { return ok_; }

 private:
  bool Fixed(size_t size, uint64_t* value) {
    if (data_.size() - at_ < size) return false;
    std::memcpy(value, data_.data() + at_, size);  // little-endian hosts
    at_ += size;
    return true;
  }

  const absl::string_view data_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace firstframe

#endif  // LIB_PERFETTO_PROTO_READER_H_
