#include "lib/safetensors/header_parser.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/checked_math.h"
#include "lib/base/edit_distance.h"

namespace firstframe {
namespace {

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr absl::string_view kCount = "a whole number from 0 to 2^64 - 1";

std::string ExpectedDType(absl::string_view found) {
  std::vector<std::string> names;
  for (const DTypeInfo& info : AllDTypes()) {
    names.push_back(std::string(info.name));
    if (absl::EqualsIgnoreCase(info.name, found)) {
      return absl::StrCat(info.name, " (case matters)");
    }
  }
  if (const auto near = NearestName(found, names)) {
    return absl::StrCat("a type such as ", *near);
  }
  return "one of the 22 element types";
}

}  // namespace

bool HeaderParser::Refuse(absl::string_view rule, absl::string_view tensor) {
  const JsonCursor::Error& error = cursor_.error();
  sink_->Error(rule, error.position, tensor, error.found, error.expected);
  return false;
}

bool HeaderParser::RefuseNext(absl::string_view rule, absl::string_view tensor,
                              absl::string_view expected) {
  cursor_.Fail(expected);
  return Refuse(rule, tensor);
}

void HeaderParser::Parse() {
  // About what an entry takes; a smaller guess grows, a larger one costs
  // little.
  constexpr size_t kBytesPerEntry = 112;
  header_->tensors.reserve(json_.size() / kBytesPerEntry);
  names_.reserve(json_.size() / kBytesPerEntry);
  if (absl::StartsWith(json_, "\xEF\xBB\xBF")) {
    sink_->Error("byte_order_mark", cursor_.position(), "", "a byte order mark",
                 "'{'");
    return;
  }
  cursor_.SkipSpace();
  if (cursor_.position() != kHeaderPrefixSize && !cursor_.at_end()) {
    sink_->Report(StrictError(strictness_), "leading_space", kHeaderPrefixSize,
                  "", "white space before the header", "'{' at byte 8");
  }
  if (!cursor_.Sees('{')) {
    RefuseNext("json_syntax", "", "'{'");
    return;
  }
  if (ParseObject()) CheckEnd();
}

bool HeaderParser::CheckEnd() {
  cursor_.SkipSpace();
  if (cursor_.at_end()) return true;
  const bool is_nul = cursor_.Sees('\0');
  return RefuseNext(is_nul ? "nul_padding" : "text_after_object", "",
                    is_nul ? "spaces: the header is padded with them, not NULs"
                           : "white space up to the header's end");
}

bool HeaderParser::ParseObject() {
  cursor_.Take('{');
  if (cursor_.Take('}')) return true;
  do {
    if (!ParseMember()) return false;
  } while (cursor_.Take(','));
  return cursor_.Expect('}', "',' or '}'") || Refuse("json_syntax", "");
}

bool HeaderParser::ParseMember() {
  cursor_.SkipSpace();
  const uint64_t position = cursor_.position();
  const std::optional<absl::string_view> name =
      cursor_.String("a tensor's name in double quotes");
  if (!name) return Refuse("json_syntax", "");
  if (!cursor_.Expect(':', "':'")) return Refuse("json_syntax", *name);
  cursor_.SkipSpace();
  if (*name == kMetadataKey) return ParseMetadata(position);
  return CheckName(*name, position) && ParseEntry(*name, position);
}

// A second entry of a name is reported and read on, so that a file with many
// shows them all.
bool HeaderParser::CheckName(absl::string_view name, uint64_t position) {
  const auto [it, is_new] = names_.try_emplace(name, position);
  if (!is_new) {
    sink_->Error("duplicate_name", position, name, "the name a second time",
                 absl::StrCat("one entry, which is at byte ", it->second));
  }
  if (absl::StrContains(name, '\0')) {
    sink_->Report(StrictError(strictness_), "nul_in_name", position, name,
                  "a NUL in the name", "a name that C strings can hold");
  }
  return true;
}

bool HeaderParser::ParseMetadata(uint64_t position) {
  if (metadata_position_.has_value()) {
    sink_->Error("duplicate_metadata", position, "", "__metadata__ again",
                 absl::StrCat("one, which is at byte ", *metadata_position_));
    return false;
  }
  metadata_position_ = position;
  if (cursor_.Sees('n')) {
    const uint64_t at = cursor_.position();
    if (!cursor_.SkipValue(1)) return Refuse("json_syntax", "");
    sink_->Report(StrictError(strictness_), "metadata_null", at, "",
                  "__metadata__ of null",
                  "an object of strings, or no __metadata__");
    return true;
  }
  if (!cursor_.Sees('{')) {
    return RefuseNext("metadata_not_map", "",
                      "__metadata__ to be an object of strings");
  }
  cursor_.Take('{');
  if (cursor_.Take('}')) return true;
  do {
    if (!ParseMetadataMember()) return false;
  } while (cursor_.Take(','));
  return cursor_.Expect('}', "',' or '}'") || Refuse("json_syntax", "");
}

bool HeaderParser::ParseMetadataMember() {
  cursor_.SkipSpace();
  const uint64_t position = cursor_.position();
  const std::optional<absl::string_view> key = cursor_.String("a key");
  if (!key || !cursor_.Expect(':', "':'")) return Refuse("json_syntax", "");
  cursor_.SkipSpace();
  if (!cursor_.Sees('"')) {
    const bool is_entry =
        *key == "dtype" || *key == "shape" || *key == "data_offsets";
    return RefuseNext(
        "metadata_not_string", "",
        absl::StrCat("a string for __metadata__'s ", QuoteName(*key),
                     is_entry ? "; no tensor can be called __metadata__" : ""));
  }
  const std::optional<absl::string_view> value = cursor_.String("a string");
  if (!value) return Refuse("json_syntax", "");
  const auto [it, is_new] = metadata_keys_.try_emplace(*key, position);
  if (!is_new) {
    sink_->Error("metadata_duplicate_key", position, "",
                 absl::StrCat("the metadata key ", QuoteName(*key), " again"),
                 absl::StrCat("one, which is at byte ", it->second));
  }
  header_->metadata.emplace_back(std::string(*key), std::string(*value));
  return true;
}

bool HeaderParser::ParseEntry(absl::string_view name, uint64_t position) {
  if (!cursor_.Sees('{')) {
    return RefuseNext("entry_not_object", name,
                      "an object with dtype, shape and data_offsets");
  }
  cursor_.Take('{');
  Entry entry;
  SafetensorsTensor& tensor = header_->tensors.emplace_back();
  tensor.name = std::string(name);
  tensor.position = position;
  if (!cursor_.Take('}')) {
    do {
      if (!ParseField(entry, tensor)) return false;
    } while (cursor_.Take(','));
    if (!cursor_.Expect('}', "',' or '}'")) return Refuse("json_syntax", name);
  }
  if (!HasAllFields(entry, tensor, cursor_.position() - 1)) return false;
  if (entry.type) tensor.dtype = *entry.type;
  CheckSize(entry, tensor);
  return true;
}

bool HeaderParser::ParseField(Entry& entry, SafetensorsTensor& tensor) {
  cursor_.SkipSpace();
  const uint64_t position = cursor_.position();
  const std::optional<absl::string_view> key =
      cursor_.String("a field's name in double quotes");
  if (!key) return Refuse("json_syntax", tensor.name);
  if (!cursor_.Expect(':', "':'")) return Refuse("json_syntax", tensor.name);
  cursor_.SkipSpace();
  Field* const field = *key == "dtype"          ? &entry.dtype
                       : *key == "shape"        ? &entry.shape
                       : *key == "data_offsets" ? &entry.data_offsets
                                                : nullptr;
  if (field == nullptr) {
    sink_->Warning("unknown_field", position, tensor.name,
                   absl::StrCat("the field ", QuoteName(*key)),
                   "dtype, shape and data_offsets alone");
    return cursor_.SkipValue(2) || Refuse("json_syntax", tensor.name);
  }
  if (field->seen) {
    sink_->Error("duplicate_field", position, tensor.name,
                 absl::StrCat(*key, " again"),
                 absl::StrCat("one, which is at byte ", field->position));
    return false;
  }
  *field = {position, cursor_.position(), true};
  if (field == &entry.dtype) return ParseDTypeField(entry, tensor);
  if (field == &entry.shape) return ParseShape(entry, tensor);
  return ParseOffsets(tensor);
}

bool HeaderParser::ParseDTypeField(Entry& entry,
                                   const SafetensorsTensor& tensor) {
  if (!cursor_.Sees('"')) {
    return RefuseNext("bad_dtype", tensor.name, "the dtype as a string");
  }
  const std::optional<absl::string_view> name = cursor_.String("a string");
  if (!name) return Refuse("json_syntax", tensor.name);
  entry.type = ParseDType(*name);
  if (!entry.type) {
    sink_->Error("unknown_dtype", entry.dtype.value_position, tensor.name,
                 absl::StrCat("the dtype ", QuoteName(*name)),
                 sink_->is_full() ? "" : ExpectedDType(*name));
    entry.is_sound = false;
  }
  return true;
}

bool HeaderParser::ParseShape(Entry& entry, SafetensorsTensor& tensor) {
  if (!cursor_.Sees('[')) {
    return RefuseNext("bad_shape", tensor.name, "the shape as an array");
  }
  cursor_.Take('[');
  if (cursor_.Take(']')) return true;
  tensor.shape.reserve(4);  // most have no more dimensions
  bool overflows = false;
  do {
    cursor_.SkipSpace();
    const uint64_t position = cursor_.position();
    if (tensor.shape.size() == kMaxRank) {
      sink_->Error("rank_over_limit", position, tensor.name, "more dimensions",
                   absl::StrCat("at most ", kMaxRank));
      return false;
    }
    const std::optional<uint64_t> size = cursor_.Unsigned(kCount);
    if (!size) return Refuse("bad_shape", tensor.name);
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    // Beyond int64 a dimension can only stand beside a 0, and is then as good
    // as the largest.
    tensor.shape.push_back(static_cast<int64_t>(std::min(*size, kMax)));
    const std::optional<uint64_t> product =
        CheckedMultiply(entry.num_elements, *size);
    overflows |= !product.has_value();
    entry.num_elements = product.value_or(1);
  } while (cursor_.Take(','));
  if (!cursor_.Expect(']', "',' or ']'")) {
    return Refuse("bad_shape", tensor.name);
  }
  if (overflows) {
    sink_->Error("size_overflow", entry.shape.value_position, tensor.name,
                 "a shape whose number of elements overflows",
                 "at most 2^64 - 1 elements, multiplied left to right");
    entry.is_sound = false;
  }
  return true;
}

bool HeaderParser::ParseOffsets(SafetensorsTensor& tensor) {
  static constexpr absl::string_view kPair = "data_offsets as [begin, end]";
  if (!cursor_.Sees('[')) return RefuseNext("bad_offsets", tensor.name, kPair);
  cursor_.Take('[');
  cursor_.SkipSpace();
  const std::optional<uint64_t> begin = cursor_.Unsigned(kCount);
  if (!begin || !cursor_.Expect(',', kPair)) {
    return Refuse("bad_offsets", tensor.name);
  }
  cursor_.SkipSpace();
  const std::optional<uint64_t> end = cursor_.Unsigned(kCount);
  if (!end || !cursor_.Expect(']', kPair)) {
    return Refuse("bad_offsets", tensor.name);
  }
  tensor.begin = *begin;
  tensor.end = *end;
  return true;
}

bool HeaderParser::HasAllFields(const Entry& entry,
                                const SafetensorsTensor& tensor,
                                uint64_t end_position) {
  const absl::string_view missing = !entry.dtype.seen          ? "dtype"
                                    : !entry.shape.seen        ? "shape"
                                    : !entry.data_offsets.seen ? "data_offsets"
                                                               : "";
  if (missing.empty()) return true;
  sink_->Error("missing_field", end_position, tensor.name,
               "the end of the entry", missing);
  return false;
}

void HeaderParser::CheckSize(Entry& entry, const SafetensorsTensor& tensor) {
  if (tensor.end < tensor.begin) {
    sink_->Error("end_before_begin", entry.data_offsets.value_position,
                 tensor.name,
                 absl::StrCat("data from ", tensor.begin, " to ", tensor.end),
                 "an end that is not before the begin");
    return;
  }
  if (!entry.is_sound) return;
  const int bits = DTypeBits(*entry.type);
  const std::optional<uint64_t> size =
      CheckedMultiply<uint64_t>(entry.num_elements, bits);
  if (!size) {
    sink_->Error(
        "size_overflow", entry.shape.value_position, tensor.name,
        absl::StrCat(entry.num_elements, " elements of ", bits, " bits"),
        "at most 2^64 - 1 bits");
  } else if (*size % 8 != 0) {
    sink_->Error(
        "partial_byte", entry.shape.value_position, tensor.name,
        absl::StrCat(entry.num_elements, " elements of ", bits, " bits"),
        "whole bytes");
  } else if (*size / 8 != tensor.size_bytes()) {
    sink_->Error("size_mismatch", entry.data_offsets.value_position,
                 tensor.name,
                 absl::StrCat(tensor.size_bytes(), " bytes of data"),
                 absl::StrCat(*size / 8, " for ", DTypeName(*entry.type), " ",
                              ShapeToString(tensor.shape)));
  }
}

}  // namespace firstframe
