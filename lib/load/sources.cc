#include "lib/load/sources.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr double kResidentFraction = 0.95;

void AddOnce(std::string note, std::vector<std::string>* notes) {
  if (std::find(notes->begin(), notes->end(), note) == notes->end()) {
    notes->push_back(std::move(note));
  }
}

class Chooser {
 public:
  Chooser(const OpenedSources& sources, const ResidencyMap& residency,
          const PieceOptions& options, std::vector<std::string>* degraded)
      : sources_(sources),
        residency_(residency),
        options_(options),
        degraded_(degraded) {
    if (options.policy == PathPolicy::kAuto &&
        !residency.total().cached_pages) {
      AddOnce(absl::StrCat("residency unknown, buffered reads: ",
                           residency.total().unknown_reason),
              degraded);
    }
  }

  ReadPath PathOf(const Piece& piece) {
    const OpenedFile& file = sources_.files[piece.file];
    const bool wants_direct =
        options_.policy == PathPolicy::kDirect ||
        (options_.policy == PathPolicy::kAuto && !IsResident(piece));
    if (!wants_direct || file.file_system.kind == FileSystemKind::kMemory) {
      return ReadPath::kCached;
    }
    if (file.file_system.kind == FileSystemKind::kNetwork &&
        options_.policy == PathPolicy::kAuto) {
      return ReadPath::kNetwork;
    }
    if (file.direct) return ReadPath::kDirect;
    AddOnce(absl::StrCat("no direct reads, buffered instead: ",
                         file.no_direct_reason),
            degraded_);
    return ReadPath::kCached;
  }

 private:
  bool IsResident(const Piece& piece) const {
    switch (residency_.StateOf(piece.file, piece.file_begin, piece.file_end)) {
      case ResidencyMap::State::kIn:
      case ResidencyMap::State::kUnknown:
        return true;
      case ResidencyMap::State::kOut:
        return false;
      case ResidencyMap::State::kMixed:
        break;
    }
    const Residency window =
        ProbeResidency(sources_.files[piece.file].buffered, piece.file_begin,
                       piece.file_end - piece.file_begin);
    return window.fraction().value_or(1) >= kResidentFraction;
  }

  const OpenedSources& sources_;
  const ResidencyMap& residency_;
  const PieceOptions& options_;
  std::vector<std::string>* const degraded_;
};

}  // namespace

ResidencyMap OpenedSources::Probe(int threads,
                                  ResidencyMap::Detail detail) const {
  std::vector<const DataFile*> all;
  for (const OpenedFile& file : files) all.push_back(&file.buffered);
  return ResidencyMap(all, threads, detail);
}

absl::Status OpenedSources::CheckUnchanged() const {
  for (const OpenedFile& file : files) {
    FF_RETURN_IF_ERROR(file.buffered.CheckUnchanged());
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenedSources> OpenSources(const LoadPlan& plan,
                                          PathPolicy policy) {
  std::vector<uint64_t> needed(plan.paths.size());
  for (const PlannedTensor& tensor : plan.tensors) {
    uint64_t& most = needed[tensor.source.file];
    most = std::max(most, tensor.source.file_offset + tensor.source.size_bytes);
  }
  OpenedSources sources;
  for (size_t i = 0; i < plan.paths.size(); ++i) {
    const std::string& path = plan.paths[i];
    FF_ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
    if (file.size_bytes() < needed[i]) {
      return absl::DataLossError(
          absl::StrCat(path, ": the file has ", file.size_bytes(),
                       " bytes, its header promises at least ", needed[i]));
    }
    FF_ASSIGN_OR_RETURN(FileSystem file_system, DescribeFileSystem(path));
    OpenedFile opened{.buffered = std::move(file),
                      .file_system = std::move(file_system),
                      .direct = std::nullopt,
                      .no_direct_reason = "not wanted"};
    if (policy != PathPolicy::kCached) {
      absl::StatusOr<DirectFile> direct = OpenDirect(path);
      if (direct.ok() && direct->offset_alignment <= kDirectSlackBytes / 2) {
        opened.direct = *std::move(direct);
      } else {
        opened.no_direct_reason =
            direct.ok() ? absl::StrCat(path, ": wants blocks of ",
                                       direct->offset_alignment, " bytes")
                        : std::string(direct.status().message());
      }
    }
    sources.files.push_back(std::move(opened));
  }
  return sources;
}

ChosenPieces ChoosePieces(const LoadPlan& plan, const OpenedSources& sources,
                          const ResidencyMap& residency,
                          absl::Span<const ArenaRange> ranges,
                          const PieceOptions& options) {
  ChosenPieces chosen;
  Chooser chooser(sources, residency, options, &chosen.degraded);
  PieceList windows;
  for (size_t group = 0; group < ranges.size(); ++group) {
    CutPieces(plan, ranges[group], options.direct_window_bytes,
              static_cast<uint32_t>(group), ReadPath::kDirect, &windows);
  }
  for (const Piece& window : windows.pieces) {
    const ReadPath path = chooser.PathOf(window);
    uint64_t window_bytes = options.direct_window_bytes;
    if (path == ReadPath::kCached) window_bytes = options.cached_window_bytes;
    if (path == ReadPath::kNetwork) window_bytes = options.network_window_bytes;
    CutPieces(plan, window.arena, window_bytes, window.group, path,
              &chosen.list);
  }
  return chosen;
}

}  // namespace firstframe
