#include "lib/zip/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr uint32_t kMax32 = 0xFFFFFFFF;
constexpr size_t kEndRecord = 22;
constexpr size_t kLocator = 20;
constexpr size_t kEntry = 46;
constexpr size_t kLocalHeader = 30;

uint64_t Get(absl::string_view bytes, size_t at, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  }
  return value;
}

// Takes from a zip64 extra field the 64-bit forms of what the entry could not
// hold, in the order that the format fixes.
bool ReadZip64(absl::string_view extra, ZipMember& member) {
  const bool wants_size = member.size_bytes == kMax32;
  const bool wants_compressed = member.compressed_size_bytes == kMax32;
  const bool wants_offset = member.header_offset == kMax32;
  while (extra.size() >= 4) {
    const uint64_t id = Get(extra, 0, 2), size = Get(extra, 2, 2);
    if (extra.size() - 4 < size) return false;
    absl::string_view field = extra.substr(4, size);
    extra.remove_prefix(4 + size);
    if (id != 1) continue;
    const std::pair<bool, uint64_t*> wanted[] = {
        {wants_size, &member.size_bytes},
        {wants_compressed, &member.compressed_size_bytes},
        {wants_offset, &member.header_offset}};
    for (const auto& [wants, target] : wanted) {
      if (!wants) continue;
      if (field.size() < 8) return false;
      *target = Get(field, 0, 8);
      field.remove_prefix(8);
    }
    return true;
  }
  return !(wants_size || wants_compressed || wants_offset);
}

std::optional<std::string> Inflate(absl::string_view data, uint64_t size) {
  std::string text(size, '\0');
  z_stream stream = {};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  uint64_t in_left = data.size(), out_left = size;
  int result = Z_OK;
  while (result == Z_OK) {  // zlib counts in 32 bits
    constexpr uint64_t kStep = 1u << 30;
    const uInt in_step = static_cast<uInt>(std::min(in_left, kStep));
    const uInt out_step = static_cast<uInt>(std::min(out_left, kStep));
    stream.avail_in = in_step;
    stream.avail_out = out_step;
    result = ::inflate(&stream, Z_NO_FLUSH);
    const bool moved =
        stream.avail_in != in_step || stream.avail_out != out_step;
    in_left -= in_step - stream.avail_in;
    out_left -= out_step - stream.avail_out;
    if (!moved) break;
  }
  ::inflateEnd(&stream);
  if (result != Z_STREAM_END || out_left != 0) return std::nullopt;
  return text;
}

}  // namespace

absl::Status ZipReader::Malformed(uint64_t position, absl::string_view found,
                                  absl::string_view expected) const {
  return absl::DataLossError(absl::StrCat(file_->path(), ": byte ", position,
                                          ": found ", found, ", expected ",
                                          expected));
}

absl::StatusOr<std::string> ZipReader::ReadBytes(uint64_t offset,
                                                 uint64_t size) const {
  if (offset > file_->size_bytes() || size > file_->size_bytes() - offset) {
    return Malformed(
        offset, absl::StrCat("a record of ", size, " bytes"),
        absl::StrCat("one inside the file of ", file_->size_bytes(), " bytes"));
  }
  std::string bytes(size, '\0');
  FF_RETURN_IF_ERROR(file_->Read(
      offset, absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()),
                             bytes.size())));
  return bytes;
}

absl::StatusOr<ZipReader> ZipReader::Open(const std::string& path) {
  FF_ASSIGN_OR_RETURN(auto file, FileReader::Open(path));
  ZipReader reader(std::move(file));
  FF_RETURN_IF_ERROR(reader.ReadDirectory());
  return reader;
}

absl::Status ZipReader::ReadDirectory() {
  const uint64_t file_size = file_->size_bytes();
  // The end record is last but for a comment of at most 65535 bytes.
  const uint64_t tail_size =
      std::min<uint64_t>(file_size, kEndRecord + 0xFFFF + kLocator);
  FF_ASSIGN_OR_RETURN(const std::string tail,
                      ReadBytes(file_size - tail_size, tail_size));
  const size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || tail.size() - end < kEndRecord) {
    return Malformed(file_size, "no end-of-directory record", "a zip archive");
  }
  uint64_t count = Get(tail, end + 10, 2);
  uint64_t size = Get(tail, end + 12, 4);
  uint64_t offset = Get(tail, end + 16, 4);
  if (end >= kLocator && tail.compare(end - kLocator, 4, "PK\x06\x07") == 0) {
    FF_ASSIGN_OR_RETURN(const std::string record,
                        ReadBytes(Get(tail, end - kLocator + 8, 8), 56));
    count = Get(record, 32, 8);
    size = Get(record, 40, 8);
    offset = Get(record, 48, 8);
  }
  FF_ASSIGN_OR_RETURN(const std::string directory, ReadBytes(offset, size));
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const absl::string_view rest = absl::string_view(directory).substr(at);
    if (rest.size() < kEntry || rest.substr(0, 4) != "PK\x01\x02") {
      return Malformed(offset + at, "no directory entry",
                       absl::StrCat("entry ", i + 1, " of ", count));
    }
    const uint64_t name = Get(rest, 28, 2), extra = Get(rest, 30, 2),
                   comment = Get(rest, 32, 2);
    if (rest.size() - kEntry < name + extra + comment) {
      return Malformed(offset + at, "a directory entry that is cut off",
                       "its name and fields");
    }
    ZipMember member;
    member.method = static_cast<uint16_t>(Get(rest, 10, 2));
    member.crc = static_cast<uint32_t>(Get(rest, 16, 4));
    member.compressed_size_bytes = Get(rest, 20, 4);
    member.size_bytes = Get(rest, 24, 4);
    member.header_offset = Get(rest, 42, 4);
    member.name = std::string(rest.substr(kEntry, name));
    if (!ReadZip64(rest.substr(kEntry + name, extra), member)) {
      return Malformed(offset + at, "no 64-bit sizes", "a zip64 field");
    }
    members_.push_back(std::move(member));
    at += kEntry + name + extra + comment;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ZipReader::Read(const ZipMember& member,
                                            uint64_t max_size_bytes) const {
  if (member.size_bytes > max_size_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file_->path(), ": found a member of ", member.size_bytes,
                     " bytes, expected at most ", max_size_bytes));
  }
  FF_ASSIGN_OR_RETURN(const std::string header,
                      ReadBytes(member.header_offset, kLocalHeader));
  if (header.compare(0, 4, "PK\x03\x04") != 0) {
    return Malformed(member.header_offset, "no local header", "a member");
  }
  const uint64_t data = member.header_offset + kLocalHeader +
                        Get(header, 26, 2) + Get(header, 28, 2);
  FF_ASSIGN_OR_RETURN(std::string bytes,
                      ReadBytes(data, member.compressed_size_bytes));
  if (member.method == 8) {
    std::optional<std::string> text = Inflate(bytes, member.size_bytes);
    if (!text) return Malformed(data, "damaged data", "a deflated member");
    bytes = *std::move(text);
  } else if (member.method != 0) {
    return absl::UnimplementedError(
        absl::StrCat(file_->path(), ": found compression method ",
                     member.method, ", expected stored (0) or deflated (8)"));
  }
  const uint32_t crc = static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (bytes.size() != member.size_bytes || crc != member.crc) {
    return Malformed(data, "bytes of another checksum",
                     absl::StrCat("CRC-32 ", absl::Hex(member.crc)));
  }
  return bytes;
}

}  // namespace firstframe
