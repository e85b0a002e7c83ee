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

absl::StatusOr<std::vector<std::string>> ListNames(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot list ", folder));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string DescribeContents(const std::string& folder,
                             const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  const bool is_pipeline =
      std::binary_search(names.begin(), names.end(), "model_index.json");
  for (const std::string& name : names) {
    struct stat info;
    const bool is_folder =
        ::stat(absl::StrCat(folder, "/", name).c_str(), &info) == 0 &&
        S_ISDIR(info.st_mode);
    if (is_pipeline
            ? is_folder
            : absl::EndsWith(name, ".bin") || absl::EndsWith(name, ".pt") ||
                  absl::EndsWith(name, ".pth") ||
                  absl::EndsWith(name, ".ckpt")) {
      shown.push_back(name);
    }
  }
  if (is_pipeline) {
    return absl::StrCat("a pipeline folder, expected one of its components: ",
                        absl::StrJoin(shown, ", "));
  }
  if (!shown.empty()) {
    return absl::StrCat("found ", absl::StrJoin(shown, ", "),
                        ", which are Python pickles, expected *.safetensors");
  }
  return absl::StrCat("found ", names.size(),
                      " other files, expected *.safetensors or an index");
}

// Returns the index to follow, "" for none; reports the others.
absl::StatusOr<std::string> ChooseIndex(const std::string& folder,
                                        const std::vector<std::string>& names,
                                        FindingSink& sink) {
  std::vector<std::string> plain, variants;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, kIndexSuffix)) {
      plain.push_back(name);
    } else if (absl::StrContains(name, kIndexMark) &&
               absl::EndsWith(name, ".json")) {
      variants.push_back(name);
    }
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

void FindFiles(const std::string& folder, const std::vector<std::string>& names,
               CheckpointLayout& layout, FindingSink& sink) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, kSuffix)) found.push_back(name);
  }
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
    layout.files.push_back(absl::StrCat(folder, "/", name));
  }
}

absl::Status FindInFolder(CheckpointLayout& layout) {
  const std::string& folder = layout.folder;
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(folder));
  size_t dropped = 0;
  FindingSink sink(folder, &layout.warnings, &dropped);
  FF_ASSIGN_OR_RETURN(const std::string index,
                      ChooseIndex(folder, names, sink));
  if (!index.empty()) {
    layout.index_path = absl::StrCat(folder, "/", index);
    return absl::OkStatus();
  }
  FindFiles(folder, names, layout, sink);
  if (!layout.files.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(folder, ": ", DescribeContents(folder, names)));
}

}  // namespace

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
