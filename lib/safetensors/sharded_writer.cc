#include "lib/safetensors/sharded_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/json_writer.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/finding.h"

namespace firstframe {

absl::StatusOr<ShardedSafetensorsWriter> ShardedSafetensorsWriter::Create(
    const std::string& folder, const std::string& stem,
    std::vector<TensorSpec> specs, const SafetensorsMetadata& metadata,
    int num_shards) {
  if (num_shards < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", num_shards, " shards, expected 1 at least"));
  }
  // Says what is wrong with a name or a shape before any file is made.
  FF_ASSIGN_OR_RETURN(const SafetensorsPlan plan,
                      PlanSafetensors(specs, metadata));
  ShardedSafetensorsWriter writer;
  writer.folder_ = folder;
  writer.stem_ = stem;
  writer.metadata_ = metadata;
  writer.total_size_bytes_ = plan.data_size;
  const size_t count =
      std::clamp<size_t>(num_shards, 1, std::max<size_t>(1, specs.size()));
  writer.shards_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    writer.shards_[i].name =
        count == 1 ? absl::StrCat(stem, ".safetensors")
                   : absl::StrFormat("%s-%05d-of-%05d.safetensors", stem, i + 1,
                                     count);
  }
  uint64_t bytes_before = 0;
  size_t shard = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    // The next shard begins when this one has its share, or when only as many
    // tensors are left as shards that have none yet.
    const bool has_share = bytes_before * count >= plan.data_size * (shard + 1);
    const bool must_move = specs.size() - i < count - shard;
    if (shard + 1 < count && !writer.shards_[shard].specs.empty() &&
        (has_share || must_move)) {
      ++shard;
    }
    bytes_before +=
        CheckedSizeBytes(specs[i].dtype, specs[i].shape).value_or(0);
    writer.shard_of_.emplace(specs[i].name, shard);
    writer.shards_[shard].specs.push_back(std::move(specs[i]));
  }
  return writer;
}

absl::Status ShardedSafetensorsWriter::Write(
    absl::string_view name, absl::Span<const std::byte> bytes) {
  const auto it = shard_of_.find(name);
  if (it == shard_of_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder_, ": tensor ", QuoteName(name),
        ": found no such name, expected one of ", shard_of_.size()));
  }
  Shard& shard = shards_[it->second];
  if (!shard.writer.has_value()) {
    FF_ASSIGN_OR_RETURN(
        shard.writer,
        SafetensorsWriter::Create(absl::StrCat(folder_, "/", shard.name),
                                  shard.specs, metadata_));
  }
  FF_RETURN_IF_ERROR(shard.writer->Write(name, bytes));
  if (++shard.num_written < shard.specs.size()) return absl::OkStatus();
  FF_RETURN_IF_ERROR(shard.writer->Finish());
  shard.writer.reset();
  return absl::OkStatus();
}

std::string ShardedSafetensorsWriter::Index() const {
  std::map<absl::string_view, size_t> sorted(shard_of_.begin(),
                                             shard_of_.end());
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  json.BeginObject();
  json.Key("metadata").BeginObject();
  json.Key("total_size").Uint(total_size_bytes_);
  json.EndObject();
  json.Key("weight_map").BeginObject();
  for (const auto& [name, shard] : sorted) {
    json.Key(name).String(shards_[shard].name);
  }
  json.EndObject();
  json.EndObject();
  text += '\n';
  return text;
}

absl::Status ShardedSafetensorsWriter::Finish() {
  for (Shard& shard : shards_) {
    const std::string path = absl::StrCat(folder_, "/", shard.name);
    if (shard.specs.empty()) {  // a checkpoint without tensors
      FF_RETURN_IF_ERROR(WriteSafetensors(path, {}, metadata_));
    } else if (shard.num_written < shard.specs.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": found ", shard.num_written,
                       " tensors written, expected ", shard.specs.size()));
    }
  }
  if (shards_.size() == 1) return absl::OkStatus();
  return WriteOutputFile(paths().back(), Index());
}

std::vector<std::string> ShardedSafetensorsWriter::paths() const {
  std::vector<std::string> paths;
  for (const Shard& shard : shards_) {
    paths.push_back(absl::StrCat(folder_, "/", shard.name));
  }
  if (shards_.size() > 1) {
    paths.push_back(
        absl::StrCat(folder_, "/", stem_, ".safetensors.index.json"));
  }
  return paths;
}

}  // namespace firstframe
