#include "lib/regions/source_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/glob.h"
#include "lib/base/run_threads.h"

namespace firstframe {
namespace {

namespace fs = std::filesystem;

struct SourceFile {
  std::string path;
  SourceLanguage language;
};

bool IsSkippedFolder(const std::string& name) {
  return name.size() > 1 &&
         (name[0] == '.' || name == "node_modules" || name == "__pycache__");
}

std::vector<SourceFile> ListSources(const fs::path& root,
                                    const SourceScanOptions& options) {
  std::vector<SourceFile> files;
  std::error_code error;
  fs::recursive_directory_iterator it(
      root, fs::directory_options::skip_permission_denied, error);
  const fs::recursive_directory_iterator end;
  const size_t root_size = root.native().size() + 1;
  for (; it != end; it.increment(error)) {
    const fs::directory_entry& entry = *it;
    const std::string& path = entry.path().native();
    if (entry.is_directory(error)) {
      if (IsSkippedFolder(entry.path().filename().native())) {
        it.disable_recursion_pending();
      }
      continue;
    }
    const std::optional<SourceLanguage> language = LanguageOfPath(path);
    if (!language.has_value()) continue;
    const std::string below = path.substr(std::min(root_size, path.size()));
    const bool excluded = std::any_of(
        options.exclude.begin(), options.exclude.end(),
        [&](const std::string& glob) { return GlobMatch(glob, below); });
    if (!excluded) files.push_back({path, *language});
  }
  std::sort(
      files.begin(), files.end(),
      [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

// Reads `path` into `*text`; false when it cannot or when it is too large.
bool ReadSource(const std::string& path, std::string* text) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  bool ok = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
            info.st_size <= kMaxSourceBytes;
  if (ok) {
    text->resize(info.st_size);
    size_t got = 0;
    while (got < text->size()) {
      const ssize_t n = ::read(fd, text->data() + got, text->size() - got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += n;
    }
    text->resize(got);
  }
  ::close(fd);
  return ok;
}

// What one thread found; joined in order of path afterwards.
void ScanFiles(const std::vector<SourceFile>& files, std::atomic<size_t>& next,
               SourceScan* scan) {
  constexpr size_t kBatch = 32;
  std::string text;
  for (size_t begin; (begin = next.fetch_add(kBatch)) < files.size();) {
    const size_t end = std::min(begin + kBatch, files.size());
    for (size_t i = begin; i < end; ++i) {
      if (!ReadSource(files[i].path, &text)) {
        scan->skipped.push_back(files[i].path);
        continue;
      }
      ++scan->file_count;
      scan->byte_count += text.size();
      for (RegionMention& mention : ScanSource(text, files[i].language)) {
        scan->mentions.push_back({files[i].path, std::move(mention)});
      }
    }
  }
}

}  // namespace

absl::StatusOr<SourceScan> ScanSourceTree(const std::string& root,
                                          const SourceScanOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(root, error);
  std::vector<SourceFile> files;
  if (fs::is_directory(status)) {
    fs::path folder = fs::path(root).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    files = ListSources(folder, options);
  } else if (fs::exists(status)) {
    files.push_back(
        {root, LanguageOfPath(root).value_or(SourceLanguage::kSettings)});
  } else {
    return absl::NotFoundError(absl::StrCat(root, ": ", std::strerror(ENOENT)));
  }
  std::atomic<size_t> next = 0;
  std::vector<SourceScan> parts(std::clamp(options.threads, 1, 64));
  RunOnThreads(static_cast<int>(parts.size()),
               [&](int t) { ScanFiles(files, next, &parts[t]); });

  SourceScan scan;
  for (SourceScan& part : parts) {
    scan.file_count += part.file_count;
    scan.byte_count += part.byte_count;
    std::move(part.mentions.begin(), part.mentions.end(),
              std::back_inserter(scan.mentions));
    std::move(part.skipped.begin(), part.skipped.end(),
              std::back_inserter(scan.skipped));
  }
  std::stable_sort(scan.mentions.begin(), scan.mentions.end(),
                   [](const SourceMention& a, const SourceMention& b) {
                     return a.path < b.path;
                   });
  std::sort(scan.skipped.begin(), scan.skipped.end());
  return scan;
}

}  // namespace firstframe
