#include "lib/safetensors/check.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/file_reader.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/safetensors/layout.h"
#include "lib/safetensors/shard_index.h"

namespace firstframe {
namespace {

absl::string_view Basename(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// Returns the SHA-256 that the file's place in a cache claims, or "".
absl::string_view ClaimedSha256(const FileReport& report) {
  for (const absl::string_view path : {absl::string_view(report.link_target),
                                       absl::string_view(report.path)}) {
    const absl::string_view name = Basename(path);
    if (name.size() == 64 &&
        std::all_of(name.begin(), name.end(), absl::ascii_isxdigit)) {
      return name;
    }
  }
  return "";
}

absl::StatusOr<std::string> HashFile(const FileReader& reader, HashKind kind) {
  constexpr uint64_t kBlock = 1 << 20;
  std::vector<std::byte> block(std::min(kBlock, reader.size_bytes()));
  Hasher hasher(kind);
  for (uint64_t at = 0; at < reader.size_bytes(); at += block.size()) {
    const auto part = absl::MakeSpan(block).subspan(
        0, std::min<uint64_t>(block.size(), reader.size_bytes() - at));
    FF_RETURN_IF_ERROR(reader.Read(at, part));
    hasher.Update(part);
  }
  return hasher.HexDigest();
}

class PathCheck {
 public:
  PathCheck(const CheckOptions& options,
            const std::function<void(const FileReport&)>& visit,
            CheckTotals* totals)
      : options_(options), visit_(visit), totals_(totals) {}

  absl::Status Check(const std::string& path) {
    struct stat info;
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      return CheckFolder(path, /*may_descend=*/true);
    }
    FF_ASSIGN_OR_RETURN(const CheckpointLayout layout, FindCheckpoint(path));
    if (!layout.index_path.empty()) return CheckIndex(layout.index_path);
    return CheckFile(path).status();
  }

 private:
  void Emit(const FileReport& report) {
    totals_->Add(report);
    visit_(report);
  }

  // Reports on a file and returns its verdict. A file is reported once.
  absl::StatusOr<HeaderVerdict> CheckFile(const std::string& path) {
    FF_ASSIGN_OR_RETURN(const auto reader, FileReader::Open(path));
    FF_ASSIGN_OR_RETURN(HeaderVerdict verdict,
                        ReadHeader(*reader, options_.strictness));
    if (!reported_.insert(path).second) return verdict;
    FileReport report;
    report.path = path;
    report.link_target = LinkTarget(path);
    report.size_bytes = reader->size_bytes();
    report.findings = verdict.findings;
    report.dropped_findings = verdict.dropped_findings;
    if (verdict.ok()) {
      report.header_bytes = verdict.header.data_offset;
      report.tensors = verdict.header.tensors.size();
      totals_->summary.Add(verdict.header, reader->size_bytes());
    }
    if (options_.hash.has_value()) {
      FF_ASSIGN_OR_RETURN(report.hash, HashFile(*reader, *options_.hash));
      CheckClaimedHash(report);
    }
    FF_RETURN_IF_ERROR(reader->CheckUnchanged());
    Emit(report);
    return verdict;
  }

  void CheckClaimedHash(FileReport& report) {
    const absl::string_view claimed = ClaimedSha256(report);
    if (options_.hash != HashKind::kSha256 || claimed.empty() ||
        absl::EqualsIgnoreCase(claimed, report.hash)) {
      return;
    }
    FindingSink sink(report.path, &report.findings, &report.dropped_findings);
    sink.Error("blob_hash", std::nullopt, "",
               absl::StrCat("the SHA-256 ", report.hash),
               absl::StrCat(claimed, ", which the blob is named after"));
    report.findings.back().link_target = report.link_target;
  }

  absl::Status CheckIndex(const std::string& path) {
    FF_ASSIGN_OR_RETURN(const auto reader, FileReader::Open(path));
    std::string text(std::min(reader->size_bytes(), kMaxIndexSize + 1), '\0');
    FF_RETURN_IF_ERROR(reader->Read(
        0, absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()),
                          text.size())));
    IndexVerdict verdict = CheckShardIndex(path, text, options_.strictness);
    if (verdict.ok()) FF_RETURN_IF_ERROR(CheckShards(path, verdict));
    FileReport report;
    report.is_index = true;
    report.path = path;
    report.link_target = LinkTarget(path);
    report.size_bytes = reader->size_bytes();
    report.tensors = verdict.index.entries.size();
    report.findings = std::move(verdict.findings);
    report.dropped_findings = verdict.dropped_findings;
    for (Finding& finding : report.findings) {
      finding.link_target = report.link_target;
    }
    Emit(report);
    return absl::OkStatus();
  }

  absl::Status CheckShards(const std::string& path, IndexVerdict& verdict) {
    const std::string folder(
        absl::string_view(path).substr(0, path.size() - Basename(path).size()));
    FindingSink sink(path, &verdict.findings, &verdict.dropped_findings);
    IndexCheck check(verdict.index, options_.strictness, &sink);
    for (uint32_t i = 0; i < verdict.index.files.size(); ++i) {
      const std::string shard = folder + verdict.index.files[i];
      const absl::StatusOr<HeaderVerdict> header = CheckFile(shard);
      if (absl::IsNotFound(header.status())) {
        check.AddMissingShard(i, DescribeAbsence(shard));
        continue;
      }
      FF_RETURN_IF_ERROR(header.status());
      if (!header->ok()) continue;
      check.AddShard(i, header->header, [](const SafetensorsTensor&) {});
    }
    check.Finish();
    return absl::OkStatus();
  }

  absl::Status CheckFolder(const std::string& folder, bool may_descend) {
    FF_ASSIGN_OR_RETURN(const FolderListing listing, ListFolder(folder));
    for (const std::string& index : listing.indexes) {
      FF_RETURN_IF_ERROR(CheckIndex(absl::StrCat(folder, "/", index)));
    }
    if (listing.indexes.empty()) {
      FF_RETURN_IF_ERROR(CheckTogether(folder));
    }
    for (const std::string& name : listing.files) {
      const std::string path = absl::StrCat(folder, "/", name);
      if (reported_.contains(path)) continue;
      FF_RETURN_IF_ERROR(CheckFile(path).status());
    }
    if (!listing.indexes.empty() || !listing.files.empty()) {
      return absl::OkStatus();
    }
    const size_t before = reported_.size();
    if (may_descend) {
      for (const std::string& name : listing.folders) {
        const absl::Status status =
            CheckFolder(absl::StrCat(folder, "/", name), false);
        if (!status.ok() && !absl::IsNotFound(status)) return status;
      }
    }
    if (reported_.size() > before) return absl::OkStatus();
    return FindCheckpoint(folder).status();  // says what is there instead
  }

  // Checks the files that are read together for want of an index: no name may
  // come twice.
  absl::Status CheckTogether(const std::string& folder) {
    const auto layout = FindCheckpoint(folder);
    if (!layout.ok() || layout->files.size() < 2) return absl::OkStatus();
    absl::flat_hash_map<std::string, size_t> first_file;
    FileReport report;  // the folder stands in for the missing index
    report.is_index = true;
    report.path = folder;
    FindingSink sink(folder, &report.findings, &report.dropped_findings);
    for (size_t i = 0; i < layout->files.size(); ++i) {
      FF_ASSIGN_OR_RETURN(const HeaderVerdict verdict,
                          CheckFile(layout->files[i]));
      for (const SafetensorsTensor& tensor : verdict.header.tensors) {
        const auto [it, is_new] = first_file.try_emplace(tensor.name, i);
        if (is_new || it->second == i) continue;
        sink.Error(
            "name_in_two_files", std::nullopt, tensor.name,
            absl::StrCat("it in ", layout->files[it->second], " and in ",
                         layout->files[i], " (byte ", tensor.position, ")"),
            "an index that says which one counts");
      }
    }
    if (!report.findings.empty()) Emit(report);
    return absl::OkStatus();
  }

  const CheckOptions& options_;
  const std::function<void(const FileReport&)>& visit_;
  CheckTotals* const totals_;
  absl::flat_hash_set<std::string> reported_;
};

}  // namespace

void TensorSummary::Add(const SafetensorsHeader& header, uint64_t file_size) {
  header_bytes += header.data_offset;
  file_bytes += file_size;
  for (const SafetensorsTensor& tensor : header.tensors) {
    const uint64_t bits = DTypeBits(tensor.dtype);
    const uint64_t size = tensor.size_bytes();
    const uint64_t elements = size * 8 / bits;
    for (Count* count : {&all, &by_dtype[static_cast<int>(tensor.dtype)]}) {
      ++count->tensors;
      count->elements += elements;
      count->size_bytes += size;
    }
    const uint64_t offset = header.data_offset + tensor.begin;
    for (size_t i = 0; i < kAlignments.size(); ++i) {
      aligned[i] += offset % kAlignments[i] == 0;
    }
    misaligned += bits > 8 && offset % (bits / 8) != 0;
    empty += size == 0;
    if (size > largest_bytes) {
      largest = tensor.name;
      largest_bytes = size;
    }
  }
}

void CheckTotals::Add(const FileReport& report) {
  ++(report.is_index ? indexes : files);
  invalid += !report.is_valid();
  // A file that reached the limit with errors has errors beyond it for certain
  // to be counted; warnings are dropped first.
  errors += report.is_valid() ? 0 : report.dropped_findings;
  warnings += report.is_valid() ? report.dropped_findings : 0;
  for (const Finding& finding : report.findings) {
    ++(finding.severity == Severity::kError ? errors : warnings);
  }
}

absl::Status ConformanceCheck::Check(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  return PathCheck(options_, visit_, &totals_).Check(trimmed);
}

}  // namespace firstframe
