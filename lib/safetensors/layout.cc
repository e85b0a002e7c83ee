#include "lib/safetensors/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr absl::string_view kSuffix = ".safetensors";
constexpr absl::string_view kIndexMark = ".safetensors.index.";
constexpr absl::string_view kIndexSuffix = ".safetensors.index.json";

// What diffusers and transformers look for, in this order.
constexpr absl::string_view kSingleFiles[] = {
    "diffusion_pytorch_model.safetensors", "model.safetensors"};

char FirstByte(const std::string& path) {
  char first = 0;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  if (::read(fd, &first, 1) != 1) first = 0;
  ::close(fd);
  return first;
}

bool IsIndexFile(const std::string& path) {
  if (absl::EndsWith(path, ".json")) return true;
  return !absl::EndsWith(path, kSuffix) && FirstByte(path) == '{';
}

bool IsPickle(absl::string_view name) {
  return absl::EndsWith(name, ".bin") || absl::EndsWith(name, ".pt") ||
         absl::EndsWith(name, ".pth") || absl::EndsWith(name, ".ckpt");
}

std::string DescribeContents(const FolderListing& listing) {
  const std::vector<std::string>& others = listing.others;
  if (std::binary_search(others.begin(), others.end(), "model_index.json")) {
    return absl::StrCat(
        "found a pipeline folder, expected one of its "
        "components: ",
        absl::StrJoin(listing.folders, ", "));
  }
  std::vector<std::string> pickles;
  std::copy_if(others.begin(), others.end(), std::back_inserter(pickles),
               IsPickle);
  if (!pickles.empty()) {
    return absl::StrCat("found ", absl::StrJoin(pickles, ", "),
                        ", which are Python pickles, expected *.safetensors");
  }
  return absl::StrCat("found ", others.size(),
                      " other files, expected *.safetensors or an index");
}

// Returns the index to follow, "" for none; reports the others.
absl::StatusOr<std::string> ChooseIndex(const std::string& folder,
                                        const FolderListing& listing,
                                        FindingSink& sink) {
  std::vector<std::string> plain, variants;
  for (const std::string& name : listing.indexes) {
    (absl::EndsWith(name, kIndexSuffix) ? plain : variants).push_back(name);
  }
  const std::vector<std::string>& candidates = plain.empty() ? variants : plain;
  if (candidates.empty()) return std::string();
  if (candidates.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": found ", candidates.size(), " indexes (",
                     absl::StrJoin(candidates, ", "),
                     "), expected one: pass the one that is meant"));
  }
  if (!plain.empty() && !variants.empty()) {
    sink.Warning("index_left_aside", std::nullopt, "",
                 absl::StrJoin(variants, ", "),
                 absl::StrCat(plain[0], " alone, which is followed"));
  }
  return candidates[0];
}

void ChooseFiles(std::vector<std::string> found, CheckpointLayout& layout,
                 FindingSink& sink) {
  for (const absl::string_view single : kSingleFiles) {
    const auto it = std::find(found.begin(), found.end(), single);
    if (it == found.end() || found.size() == 1) continue;
    std::vector<std::string> others = found;
    others.erase(others.begin() + (it - found.begin()));
    sink.Warning("file_left_aside", std::nullopt, "",
                 absl::StrJoin(others, ", "),
                 absl::StrCat(single, " alone, which is read"));
    found = {std::string(single)};
    break;
  }
  for (const std::string& name : found) {
    layout.files.push_back(absl::StrCat(layout.folder, "/", name));
  }
}

absl::Status FindInFolder(CheckpointLayout& layout) {
  const std::string& folder = layout.folder;
  FF_ASSIGN_OR_RETURN(const FolderListing listing, ListFolder(folder));
  size_t dropped = 0;
  FindingSink sink(folder, &layout.warnings, &dropped);
  FF_ASSIGN_OR_RETURN(const std::string index,
                      ChooseIndex(folder, listing, sink));
  if (!index.empty()) {
    layout.index_path = absl::StrCat(folder, "/", index);
    return absl::OkStatus();
  }
  ChooseFiles(listing.files, layout, sink);
  if (!layout.files.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(folder, ": ", DescribeContents(listing)));
}

}  // namespace

absl::StatusOr<FolderListing> ListFolder(const std::string& folder) {
  FolderListing listing;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    const bool is_index =
        absl::StrContains(name, kIndexMark) && absl::EndsWith(name, ".json");
    (is_index                        ? listing.indexes
     : absl::EndsWith(name, kSuffix) ? listing.files
     : it->is_directory(ignored)     ? listing.folders
                                     : listing.others)
        .push_back(name);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot list ", folder));
  }
  for (std::vector<std::string>* names :
       {&listing.indexes, &listing.files, &listing.folders, &listing.others}) {
    std::sort(names->begin(), names->end());
  }
  return listing;
}

std::string LinkTarget(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : size);
  return target;
}

std::string DescribeAbsence(const std::string& path) {
  const std::string target = LinkTarget(path);
  if (target.empty()) return "nothing";
  return absl::StrCat("a link to ", target, ", which is not there");
}

absl::StatusOr<CheckpointLayout> FindCheckpoint(const std::string& path) {
  CheckpointLayout layout;
  layout.path = path;
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    const int error = errno;
    if (error == ENOENT) {
      return absl::NotFoundError(absl::StrCat(
          path, ": found ", DescribeAbsence(path), ", expected a checkpoint"));
    }
    return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", path));
  }
  if (S_ISDIR(info.st_mode)) {
    layout.folder = path;
    while (layout.folder.size() > 1 && layout.folder.back() == '/') {
      layout.folder.pop_back();
    }
    FF_RETURN_IF_ERROR(FindInFolder(layout));
    return layout;
  }
  const size_t slash = path.rfind('/');
  layout.folder = slash == std::string::npos ? "."
                  : slash == 0               ? "/"
                                             : path.substr(0, slash);
  if (IsIndexFile(path)) {
    layout.index_path = path;
  } else {
    layout.files = {path};
  }
  return layout;
}

}  // namespace firstframe
