// Writes protobuf's wire format by field number, without generated code.
//
// For append-only formats whose schema we use a fraction of. Sub-messages are
// written in place: a one-byte length is reserved and widened only when the
// message turns out longer than 127 bytes, so nothing is built twice.
//
//   ProtoWriter proto(&bytes);
//   proto.Message(1, [&] {
//     proto.Varint(8, timestamp_ns);
//     proto.Bytes(23, "name");
//   });
//
// Wire format: https://protobuf.dev/programming-guides/encoding.
// Thread-compatible.

#ifndef LIB_PERFETTO_PROTO_WRITER_H_
#define LIB_PERFETTO_PROTO_WRITER_H_

#include <bit>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

class ProtoWriter {
 public:
  // Appends to `*out`, which must outlive the writer.
  explicit ProtoWriter(std::string* out) : out_(out) {}

  // uint32, uint64, bool, enum; also int32 and int64 through the conversion
  // that protobuf itself uses (negative values take ten bytes).
  void Varint(uint32_t field, uint64_t value) {
    Tag(field, 0);
    Raw(value);
  }

  void Fixed64(uint32_t field, uint64_t value) {
    Tag(field, 1);
    for (int shift = 0; shift < 64; shift += 8) {
      out_->push_back(static_cast<char>(value >> shift));
    }
  }

  void Double(uint32_t field, double value) {
    Fixed64(field, std::bit_cast<uint64_t>(value));
  }

  // string and bytes. A string field must hold UTF-8: the caller sees to it.
  void Bytes(uint32_t field, absl::string_view value) {
    Tag(field, 2);
    Raw(value.size());
    out_->append(value.data(), value.size());
  }

  // Calls `write_fields()`, which writes the fields of sub-message `field`.
  template <typename WriteFields>
  void Message(uint32_t field, WriteFields&& write_fields) {
    Tag(field, 2);
    out_->push_back(0);
    const size_t start = out_->size();
    write_fields();
    SetLength(start);
  }

 private:
  void Tag(uint32_t field, uint32_t wire_type) {
    Raw(uint64_t{field} << 3 | wire_type);
  }

  void Raw(uint64_t value) {
    while (value >= 0x80) {
      out_->push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_->push_back(static_cast<char>(value));
  }

  // Puts the length of the message that begins at `start` into the byte before.
  void SetLength(size_t start) {
    const size_t length = out_->size() - start;
    if (length < 0x80) {
      (*out_)[start - 1] = static_cast<char>(length);
      return;
    }
    char varint[10];
    size_t size = 0;
    for (size_t rest = length; rest > 0; rest >>= 7) {
      varint[size++] = static_cast<char>(rest >> 7 ? rest | 0x80 : rest);
    }
    out_->replace(start - 1, 1, varint, size);
  }

  std::string* const out_;
};

}  // namespace firstframe

#endif  // LIB_PERFETTO_PROTO_WRITER_H_
