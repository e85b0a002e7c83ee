#include "lib/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

absl::Status WriteAll(int fd, absl::string_view data, off_t offset,
                      bool positioned, const std::string& path) {
  while (!data.empty()) {
    const ssize_t n = positioned
                          ? ::pwrite(fd, data.data(), data.size(), offset)
                          : ::write(fd, data.data(), data.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    }
    data.remove_prefix(n);
    offset += n;
  }
  return absl::OkStatus();
}

// Follows a symbolic link, so that its target is replaced and the link stays.
std::string FollowLinks(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result = real;
  ::free(real);
  return result;
}

mode_t CurrentUmask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

std::string DescriptorPath(int fd) {
  return absl::StrCat("/proc/self/fd/", fd);
}

// Opens a file without a name in `target`'s folder; -1 where there are none, or
// none that could be given a name later.
int OpenNameless(const std::string& target) {
  const size_t slash = target.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : target.substr(0, slash + 1);
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 && ::access(DescriptorPath(fd).c_str(), F_OK) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  struct stat info;
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    }
    return OutputFile(path, /*is_direct=*/true, "", fd);
  }
  const std::string target = exists ? FollowLinks(path) : path;
  std::string temporary;
  int fd = OpenNameless(target);
  if (fd < 0) {
    temporary = absl::StrCat(target, ".tmp.XXXXXX");
    fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  }
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  }
  const mode_t mode = exists ? info.st_mode & 07777 : 0666 & ~CurrentUmask();
  (void)::fchmod(fd, mode);  // best effort: some file systems have no modes
  return OutputFile(target, /*is_direct=*/false, std::move(temporary), fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      is_direct_(other.is_direct_),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this != &other) {
    Discard();
    path_ = std::move(other.path_);
    is_direct_ = other.is_direct_;
    temporary_ = std::move(other.temporary_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

OutputFile::~OutputFile() { Discard(); }

void OutputFile::Discard() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

absl::Status OutputFile::Write(absl::string_view data) {
  return WriteAll(fd_, data, 0, /*positioned=*/false, path_);
}

absl::Status OutputFile::WriteAt(size_t offset, absl::string_view data) {
  return WriteAll(fd_, data, static_cast<off_t>(offset), /*positioned=*/true,
                  path_);
}

absl::Status OutputFile::Link() {
  const std::string source = DescriptorPath(fd_);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string name = absl::StrCat(path_, ".tmp.", ::getpid(), ".", attempt);
    if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
      return absl::OkStatus();
    }
    if (errno != EEXIST) break;
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path_));
}

absl::Status OutputFile::Commit(bool sync) {
  if (sync && ::fsync(fd_) != 0 && errno != EINVAL) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot flush ", path_));
  }
  if (!is_direct_ && temporary_.empty()) FF_RETURN_IF_ERROR(Link());
  if (::close(std::exchange(fd_, -1)) != 0) {
    const absl::Status status =
        absl::ErrnoToStatus(errno, absl::StrCat("cannot close ", path_));
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    return status;
  }
  if (is_direct_) return absl::OkStatus();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const absl::Status status =
        absl::ErrnoToStatus(errno, absl::StrCat("cannot replace ", path_));
    ::unlink(temporary_.c_str());
    return status;
  }
  return absl::OkStatus();
}

absl::Status WriteOutputFile(const std::string& path,
                             absl::string_view contents) {
  FF_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  FF_RETURN_IF_ERROR(file.Write(contents));
  return file.Commit();
}

}  // namespace firstframe
