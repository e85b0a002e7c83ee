#include "lib/zip/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr uint32_t kMax32 = 0xFFFFFFFF;
constexpr uint16_t kMaxMembers16 = 0xFFFF;
constexpr uint16_t kUtf8Names = 1 << 11;
constexpr uint16_t kDate1980 = (1 << 5) | 1;
constexpr uint16_t kZip64Extra = 0x0001;
// The id that PyTorch's own writer gives its padding.
constexpr uint16_t kPaddingExtra = 0x4246;

void Put(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(char(value >> (8 * i)));
}

uint32_t Crc(absl::Span<const std::byte> bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void PutSize(uint64_t size, std::string* out) {
  Put(std::min<uint64_t>(size, kMax32), 4, out);
}

// What a local header and a directory entry have in common, from "version
// needed" to the length of the name.
void PutCommon(absl::string_view name, uint32_t crc, uint64_t size,
               bool is_zip64, std::string* out) {
  Put(is_zip64 ? 45 : 20, 2, out);
  Put(kUtf8Names, 2, out);
  Put(0, 2, out);  // stored
  Put(0, 2, out);  // midnight
  Put(kDate1980, 2, out);
  Put(crc, 4, out);
  PutSize(size, out);
  PutSize(size, out);
  Put(name.size(), 2, out);
}

}  // namespace

absl::StatusOr<ZipWriter> ZipWriter::Create(const std::string& path) {
  FF_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  return ZipWriter(std::move(file));
}

absl::Status ZipWriter::Append(absl::string_view bytes) {
  FF_RETURN_IF_ERROR(file_.Write(bytes));
  position_ += bytes.size();
  return absl::OkStatus();
}

absl::Status ZipWriter::Add(absl::string_view name,
                            absl::Span<const std::byte> bytes,
                            size_t alignment) {
  FF_CHECK(alignment > 0 && alignment <= 32768 &&
           (alignment & (alignment - 1)) == 0);
  const bool is_taken =
      std::any_of(members_.begin(), members_.end(),
                  [&](const Member& member) { return member.name == name; });
  if (name.empty() || name.size() > 0xFFFF || is_taken) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_.path(), ": found ", is_taken ? "the member name twice" : "a name",
        " of ", name.size(), " bytes, expected a new one of 1 to 65535"));
  }
  const bool is_zip64 = bytes.size() >= kMax32;
  const uint32_t crc = Crc(bytes);
  std::string extra;
  if (is_zip64) {
    Put(kZip64Extra, 2, &extra);
    Put(16, 2, &extra);
    Put(bytes.size(), 8, &extra);
    Put(bytes.size(), 8, &extra);
  }
  constexpr size_t kLocalHeader = 30;
  const uint64_t data = position_ + kLocalHeader + name.size() + extra.size();
  if (data % alignment != 0) {
    const uint64_t padding = (alignment - (data + 4) % alignment) % alignment;
    Put(kPaddingExtra, 2, &extra);
    Put(padding, 2, &extra);
    extra.append(padding, 'Z');
  }
  members_.push_back({std::string(name), crc, bytes.size(), position_});
  std::string header = "PK\x03\x04";
  PutCommon(name, crc, bytes.size(), is_zip64, &header);
  Put(extra.size(), 2, &header);
  absl::StrAppend(&header, name, extra);
  FF_RETURN_IF_ERROR(Append(header));
  return Append(absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                                  bytes.size()));
}

absl::Status ZipWriter::Finish() {
  const uint64_t directory = position_;
  for (const Member& member : members_) {
    const bool is_large = member.size_bytes >= kMax32;
    const bool is_far = member.offset >= kMax32;
    std::string fields;
    if (is_large) {
      Put(member.size_bytes, 8, &fields);
      Put(member.size_bytes, 8, &fields);
    }
    if (is_far) Put(member.offset, 8, &fields);
    std::string extra;
    if (!fields.empty()) {
      Put(kZip64Extra, 2, &extra);
      Put(fields.size(), 2, &extra);
      extra += fields;
    }
    std::string entry = "PK\x01\x02";
    Put(45, 2, &entry);
    PutCommon(member.name, member.crc, member.size_bytes, is_large || is_far,
              &entry);
    Put(extra.size(), 2, &entry);
    Put(0, 8, &entry);  // comment, disk, internal attributes, 2 of external
    Put(0, 2, &entry);  // the other 2
    PutSize(member.offset, &entry);
    absl::StrAppend(&entry, member.name, extra);
    FF_RETURN_IF_ERROR(Append(entry));
  }
  const uint64_t size = position_ - directory;
  std::string end;
  if (members_.size() >= kMaxMembers16 || size >= kMax32 ||
      directory >= kMax32) {
    const uint64_t record = position_;
    end = "PK\x06\x06";
    Put(44, 8, &end);
    Put(45, 2, &end);
    Put(45, 2, &end);
    Put(0, 8, &end);
    Put(members_.size(), 8, &end);
    Put(members_.size(), 8, &end);
    Put(size, 8, &end);
    Put(directory, 8, &end);
    end += "PK\x06\x07";
    Put(0, 4, &end);
    Put(record, 8, &end);
    Put(1, 4, &end);
  }
  end += "PK\x05\x06";
  Put(0, 4, &end);
  const uint64_t count = std::min<uint64_t>(members_.size(), kMaxMembers16);
  Put(count, 2, &end);
  Put(count, 2, &end);
  PutSize(size, &end);
  PutSize(directory, &end);
  Put(0, 2, &end);
  FF_RETURN_IF_ERROR(Append(end));
  return file_.Commit();
}

}  // namespace firstframe
