#include "lib/safetensors/checkpoint.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/shard_index.h"

namespace firstframe {
namespace {

absl::StatusOr<std::string> ReadStart(const FileReader& reader, uint64_t size) {
  std::string text(std::min(size, reader.size_bytes()), '\0');
  FF_RETURN_IF_ERROR(reader.Read(
      0,
      absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size())));
  return text;
}

}  // namespace

absl::StatusOr<HeaderVerdict> ReadHeader(const FileReader& reader,
                                         Strictness strictness) {
  // Most headers come whole with the first read.
  constexpr uint64_t kFirstRead = 32 << 10;
  FF_ASSIGN_OR_RETURN(std::string start, ReadStart(reader, kFirstRead));
  const auto prefix =
      CheckHeaderPrefix(reader.path(), start, reader.size_bytes());
  if (const uint64_t* length = std::get_if<uint64_t>(&prefix)) {
    const size_t have = start.size();
    const size_t want = kHeaderPrefixSize + *length;
    if (want > have) {
      start.resize(want);
      FF_RETURN_IF_ERROR(reader.Read(
          have,
          absl::MakeSpan(reinterpret_cast<std::byte*>(start.data()) + have,
                         want - have)));
    }
  }
  HeaderVerdict verdict = CheckSafetensorsHeader(
      reader.path(), start, reader.size_bytes(), strictness);
  const std::string target = LinkTarget(reader.path());
  for (Finding& finding : verdict.findings) finding.link_target = target;
  return verdict;
}

// Collects what Open finds, so that one error can speak of every file.
class CheckpointOpener {
 public:
  explicit CheckpointOpener(const CheckpointOptions& options)
      : options_(options) {}

  absl::StatusOr<Checkpoint> Open(const std::string& path) {
    FF_ASSIGN_OR_RETURN(checkpoint_.layout_, FindCheckpoint(path));
    findings_ = checkpoint_.layout_.warnings;
    FF_RETURN_IF_ERROR(checkpoint_.layout_.index_path.empty() ? OpenFiles()
                                                              : OpenShards());
    FF_RETURN_IF_ERROR(FindingsStatus(findings_));
    checkpoint_.warnings_ = std::move(findings_);
    return std::move(checkpoint_);
  }

 private:
  // Returns false, with a finding, when the file is malformed.
  absl::StatusOr<bool> OpenFile(const std::string& path) {
    FF_ASSIGN_OR_RETURN(const auto reader,
                        FileReader::Open(path, options_.method));
    FF_ASSIGN_OR_RETURN(HeaderVerdict verdict,
                        ReadHeader(*reader, options_.strictness));
    const bool is_sound = verdict.ok();
    findings_.insert(findings_.end(), verdict.findings.begin(),
                     verdict.findings.end());
    checkpoint_.files_.push_back({path, LinkTarget(path), reader->identity(),
                                  std::move(verdict.header)});
    return is_sound;
  }

  void AddEntry(uint32_t file, const SafetensorsTensor& tensor) {
    const auto& tensors = checkpoint_.files_[file].header.tensors;
    const uint32_t number = static_cast<uint32_t>(&tensor - tensors.data());
    const auto [it, is_new] = checkpoint_.by_name_.try_emplace(
        tensor.name, static_cast<uint32_t>(checkpoint_.entries_.size()));
    if (!is_new) {
      const CheckpointEntry& other = checkpoint_.entries_[it->second];
      Finding finding;
      finding.rule = "name_in_two_files";
      finding.path = checkpoint_.files_[file].path;
      finding.position = tensor.position;
      finding.tensor = tensor.name;
      finding.found =
          absl::StrCat("the name in ", checkpoint_.files_[other.file].path,
                       " too, at byte ", checkpoint_.tensor(other).position);
      finding.expected = "an index that says which one counts";
      findings_.push_back(std::move(finding));
      return;
    }
    checkpoint_.entries_.push_back({file, number});
    checkpoint_.size_bytes_ += tensor.size_bytes();
  }

  absl::Status OpenFiles() {
    for (const std::string& path : checkpoint_.layout_.files) {
      FF_ASSIGN_OR_RETURN(const bool is_sound, OpenFile(path));
      if (!is_sound) continue;
      const uint32_t file = checkpoint_.files_.size() - 1;
      for (const auto& tensor : checkpoint_.files_[file].header.tensors) {
        AddEntry(file, tensor);
      }
    }
    return absl::OkStatus();
  }

  absl::Status OpenShards() {
    const std::string& path = checkpoint_.layout_.index_path;
    FF_ASSIGN_OR_RETURN(const auto reader, FileReader::Open(path));
    FF_ASSIGN_OR_RETURN(const std::string text,
                        ReadStart(*reader, kMaxIndexSize + 1));
    IndexVerdict verdict = CheckShardIndex(path, text, options_.strictness);
    if (verdict.ok()) {
      FF_RETURN_IF_ERROR(OpenIndexed(verdict));
    }
    findings_.insert(findings_.end(), verdict.findings.begin(),
                     verdict.findings.end());
    return absl::OkStatus();
  }

  absl::Status OpenIndexed(IndexVerdict& verdict) {
    FindingSink sink(checkpoint_.layout_.index_path, &verdict.findings,
                     &verdict.dropped_findings);
    IndexCheck check(verdict.index, options_.strictness, &sink);
    for (uint32_t i = 0; i < verdict.index.files.size(); ++i) {
      const std::string path =
          absl::StrCat(checkpoint_.layout_.folder, "/", verdict.index.files[i]);
      const absl::StatusOr<bool> is_sound = OpenFile(path);
      if (absl::IsNotFound(is_sound.status())) {
        check.AddMissingShard(i, DescribeAbsence(path));
        continue;
      }
      FF_RETURN_IF_ERROR(is_sound.status());
      if (!*is_sound) continue;
      const uint32_t file = checkpoint_.files_.size() - 1;
      check.AddShard(
          i, checkpoint_.files_[file].header,
          [&](const SafetensorsTensor& tensor) { AddEntry(file, tensor); });
    }
    check.Finish();
    return absl::OkStatus();
  }

  const CheckpointOptions options_;
  Checkpoint checkpoint_;
  std::vector<Finding> findings_;
};

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path,
                                            const CheckpointOptions& options) {
  return CheckpointOpener(options).Open(path);
}

const CheckpointEntry* Checkpoint::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

absl::Status Checkpoint::CheckUnchanged() const {
  for (const CheckpointFile& file : files_) {
    const absl::StatusOr<FileIdentity> now = GetFileIdentity(file.path);
    if (!now.ok() || *now != file.identity) {
      return absl::FailedPreconditionError(absl::StrCat(
          file.path, ": the file changed since its header was read"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(
    const Checkpoint& checkpoint, ReadMethod method) {
  CheckpointReader result(&checkpoint);
  for (const CheckpointFile& file : checkpoint.files()) {
    FF_ASSIGN_OR_RETURN(auto reader, FileReader::Open(file.path, method));
    if (reader->identity() != file.identity) {
      return absl::FailedPreconditionError(absl::StrCat(
          file.path, ": the file changed since its header was read"));
    }
    result.readers_.push_back(std::move(reader));
  }
  return result;
}

absl::Status CheckpointReader::Read(CheckpointEntry entry,
                                    absl::Span<std::byte> target) const {
  const SafetensorsTensor& tensor = checkpoint_->tensor(entry);
  if (target.size() != tensor.size_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", QuoteName(tensor.name), ": found room for ",
                     target.size(), " bytes, expected ", tensor.size_bytes()));
  }
  return Annotate(
      readers_[entry.file]->Read(checkpoint_->file_offset(entry), target),
      absl::StrCat("tensor ", QuoteName(tensor.name)));
}

absl::StatusOr<HostTensor> CheckpointReader::Read(CheckpointEntry entry) const {
  const SafetensorsTensor& tensor = checkpoint_->tensor(entry);
  FF_ASSIGN_OR_RETURN(
      HostTensor result,
      HostTensor::Create(tensor.dtype, tensor.shape, HostTensor::Fill::kNone));
  FF_RETURN_IF_ERROR(Read(entry, result.mutable_bytes()));
  return result;
}

}  // namespace firstframe
