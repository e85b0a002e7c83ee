#include "lib/safetensors/shard_index.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/utf8.h"
#include "lib/safetensors/json_cursor.h"

namespace firstframe {
namespace {

class IndexParser {
 public:
  IndexParser(absl::string_view text, FindingSink* sink, ShardIndex* index)
      : sink_(sink), index_(index), cursor_(text, 0) {}

  bool Parse() {
    if (!cursor_.Expect('{', "an object")) return Refuse();
    if (!cursor_.Take('}')) {
      do {
        if (!ParseMember()) return false;
      } while (cursor_.Take(','));
      if (!cursor_.Expect('}', "',' or '}'")) return Refuse();
    }
    cursor_.SkipSpace();
    if (!cursor_.at_end()) {
      cursor_.Fail("white space up to the end");
      return Refuse();
    }
    if (!has_weight_map_) {
      sink_->Error("no_weight_map", cursor_.position(), "",
                   "the end of the index", "\"weight_map\"");
    }
    return true;
  }

 private:
  bool Refuse(absl::string_view rule = "json_syntax",
              absl::string_view tensor = "") {
    const JsonCursor::Error& error = cursor_.error();
    sink_->Error(rule, error.position, tensor, error.found, error.expected);
    return false;
  }

  // Reads a key and its colon.
  std::optional<absl::string_view> ParseKey(uint64_t* position) {
    cursor_.SkipSpace();
    *position = cursor_.position();
    std::optional<absl::string_view> key = cursor_.String("a key");
    if (!key || !cursor_.Expect(':', "':'")) {
      Refuse();
      return std::nullopt;
    }
    cursor_.SkipSpace();
    return key;
  }

  bool ParseMember() {
    uint64_t position;
    const std::optional<absl::string_view> key = ParseKey(&position);
    if (!key) return false;
    if (*key == "weight_map") return ParseWeightMap(position);
    if (*key == "metadata") return ParseMetadata();
    sink_->Warning("unknown_field", position, "",
                   absl::StrCat("the field ", QuoteName(*key)),
                   "metadata and weight_map alone");
    return cursor_.SkipValue(1) || Refuse();
  }

  bool ParseMetadata() {
    if (!cursor_.Sees('{')) {
      cursor_.Fail("\"metadata\" to be an object");
      return Refuse("metadata_not_map");
    }
    cursor_.Take('{');
    if (cursor_.Take('}')) return true;
    do {
      uint64_t position;
      const std::optional<absl::string_view> key = ParseKey(&position);
      if (!key) return false;
      if (*key != "total_size") {
        if (!cursor_.SkipValue(2)) return Refuse();
        continue;
      }
      index_->total_size_position = cursor_.position();
      const std::optional<uint64_t> size =
          cursor_.Unsigned("total_size as a whole number of bytes");
      if (!size) return Refuse("bad_total_size");
      index_->total_size_bytes = *size;
    } while (cursor_.Take(','));
    return cursor_.Expect('}', "',' or '}'") || Refuse();
  }

  bool ParseWeightMap(uint64_t position) {
    if (has_weight_map_) {
      sink_->Error("duplicate_field", position, "", "\"weight_map\" again",
                   "one");
      return false;
    }
    has_weight_map_ = true;
    if (!cursor_.Sees('{')) {
      cursor_.Fail("\"weight_map\" to be an object");
      return Refuse("weight_map_not_map");
    }
    cursor_.Take('{');
    if (cursor_.Take('}')) return true;
    do {
      if (!ParseEntry()) return false;
    } while (cursor_.Take(','));
    return cursor_.Expect('}', "',' or '}'") || Refuse();
  }

  bool ParseEntry() {
    uint64_t position;
    const std::optional<absl::string_view> name = ParseKey(&position);
    if (!name) return false;
    const uint64_t file_position = cursor_.position();
    const std::optional<absl::string_view> file =
        cursor_.String("a shard's file name in double quotes");
    if (!file) return Refuse("bad_shard_name", *name);
    if (file->empty() || *file == "." || *file == ".." ||
        absl::StrContains(*file, '/') || absl::StrContains(*file, '\0')) {
      sink_->Error("bad_shard_name", file_position, *name,
                   absl::StrCat("the shard ", QuoteName(*file)),
                   "a plain file name in the index's folder");
      return true;
    }
    const auto [it, is_new] = positions_.try_emplace(*name, position);
    if (!is_new) {
      sink_->Error("duplicate_name", position, *name, "the name a second time",
                   absl::StrCat("one entry, which is at byte ", it->second));
      return true;
    }
    const auto [number, is_new_file] =
        files_.try_emplace(*file, static_cast<uint32_t>(index_->files.size()));
    if (is_new_file) index_->files.push_back(std::string(*file));
    index_->entries.push_back({std::string(*name), number->second, position});
    return true;
  }

  FindingSink* const sink_;
  ShardIndex* const index_;
  JsonCursor cursor_;
  bool has_weight_map_ = false;
  absl::flat_hash_map<absl::string_view, uint64_t> positions_;  // of names
  absl::flat_hash_map<absl::string_view, uint32_t> files_;
};

}  // namespace

IndexVerdict CheckShardIndex(absl::string_view path, absl::string_view text,
                             Strictness strictness) {
  IndexVerdict verdict;
  FindingSink sink(path, &verdict.findings, &verdict.dropped_findings);
  if (text.size() > kMaxIndexSize) {
    sink.Error("index_over_limit", std::nullopt, "",
               absl::StrCat("an index of ", text.size(), " bytes"),
               absl::StrCat("at most ", kMaxIndexSize));
    return verdict;
  }
  if (const size_t bad = FindInvalidUtf8(text); bad != text.size()) {
    sink.Error("not_utf8", bad, "", "a byte that is not UTF-8",
               "an index in UTF-8");
    return verdict;
  }
  IndexParser(text, &sink, &verdict.index).Parse();
  if (verdict.ok() && verdict.index.entries.empty()) {
    sink.Report(StrictError(strictness), "empty_weight_map", std::nullopt, "",
                "an index without tensors", "a shard for each tensor");
  }
  return verdict;
}

IndexCheck::IndexCheck(const ShardIndex& index, Strictness strictness,
                       FindingSink* sink)
    : index_(index),
      strictness_(strictness),
      sink_(sink),
      is_taken_(index.entries.size()),
      has_shard_(index.files.size()) {
  entries_.reserve(index.entries.size());
  for (uint32_t i = 0; i < index.entries.size(); ++i) {
    entries_.emplace(index.entries[i].tensor, i);
  }
}

bool IndexCheck::Take(uint32_t file, const SafetensorsTensor& tensor) {
  const auto it = entries_.find(tensor.name);
  if (it == entries_.end()) {
    sink_->Report(
        StrictError(strictness_), "not_in_index", std::nullopt, tensor.name,
        absl::StrCat("a tensor in ", QuoteName(index_.files[file]), " (byte ",
                     tensor.position, ") that the index does not have"),
        "every tensor of the shards in weight_map");
    return false;
  }
  const ShardIndex::Entry& entry = index_.entries[it->second];
  if (entry.file != file) {
    sink_->Warning("name_in_two_shards", entry.position, tensor.name,
                   absl::StrCat("the name in ", QuoteName(index_.files[file]),
                                " too (byte ", tensor.position, ")"),
                   absl::StrCat("it in ", QuoteName(index_.files[entry.file]),
                                " alone, where the index takes it from"));
    return false;
  }
  is_taken_[it->second] = true;
  total_size_bytes_ += tensor.size_bytes();
  return true;
}

void IndexCheck::AddMissingShard(uint32_t file, std::string found) {
  uint64_t tensors = 0;
  std::optional<uint64_t> position;
  for (const ShardIndex::Entry& entry : index_.entries) {
    if (entry.file != file) continue;
    if (!position) position = entry.position;
    ++tensors;
  }
  sink_->Error("missing_shard", position, "", std::move(found),
               absl::StrCat("the shard ", QuoteName(index_.files[file]),
                            " with ", tensors, " tensors"));
}

void IndexCheck::Finish() {
  bool is_whole = true;
  for (size_t i = 0; i < index_.entries.size(); ++i) {
    const ShardIndex::Entry& entry = index_.entries[i];
    if (!has_shard_[entry.file]) is_whole = false;
    if (is_taken_[i] || !has_shard_[entry.file]) continue;
    is_whole = false;
    sink_->Error("missing_tensor", entry.position, entry.tensor,
                 "a name that its shard does not hold",
                 absl::StrCat("it in ", QuoteName(index_.files[entry.file])));
  }
  if (!is_whole || !index_.total_size_bytes.has_value() ||
      *index_.total_size_bytes == total_size_bytes_) {
    return;
  }
  sink_->Report(StrictError(strictness_), "total_size",
                index_.total_size_position, "",
                absl::StrCat("a total_size of ", *index_.total_size_bytes),
                absl::StrCat(total_size_bytes_, ", the sum of its tensors"));
}

}  // namespace firstframe
