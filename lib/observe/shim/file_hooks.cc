// Which checkpoint files are opened, and what is read of them.

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/observe/shim/record.h"

namespace firstframe::shim {
namespace {

constexpr const char* kSuffixes[] = {".safetensors", ".bin",  ".pt",  ".pth",
                                     ".ckpt",        ".gguf", ".npz", ".npy",
                                     ".onnx",        ".tar",  ".pkl"};
// Smaller files are indices and settings.
constexpr off_t kMinFileBytes = 64 << 10;

// Per descriptor: 1 + slot of EventHeader::files, or 0.
constexpr int kMaxDescriptors = 4096;
std::atomic<uint8_t> slots[kMaxDescriptors];

bool IsCheckpoint(const char* path) {
  const char* const dot = path == nullptr ? nullptr : strrchr(path, '.');
  if (dot == nullptr) return false;
  for (const char* suffix : kSuffixes) {
    if (strcmp(dot, suffix) == 0) return true;
  }
  return false;
}

// Hugging Face caches hold links to files named by hash, so what is tested is
// the path as the program gave it.
void NoteOpen(const char* path, int fd, int64_t start_ns) {
  EventHeader* const header = Header();
  if (header == nullptr || fd < 0 || fd >= kMaxDescriptors) return;
  slots[fd].store(0, std::memory_order_relaxed);
  if (!IsCheckpoint(path)) return;
  const KeepErrno keep;
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size < kMinFileBytes) {
    return;
  }
  const uint64_t slot = header->num_files.fetch_add(1);
  const bool has_slot = slot < kMaxTrackedFiles;
  if (has_slot) {
    slots[fd].store(static_cast<uint8_t>(slot + 1), std::memory_order_relaxed);
  }
  Record({.kind = EventKind::kFile,
          .name = path,
          .start_ns = start_ns,
          .end_ns = NowNs(),
          .value = static_cast<uint64_t>(status.st_size),
          .slot = has_slot ? static_cast<uint32_t>(slot + 1) : 0});
}

TrackedFile* FileOf(int fd) {
  if (fd < 0 || fd >= kMaxDescriptors) return nullptr;
  const uint8_t slot = slots[fd].load(std::memory_order_relaxed);
  EventHeader* const header = Header();
  return slot == 0 || header == nullptr ? nullptr : &header->files[slot - 1];
}

// Runs `read`, which returns the bytes it got, and counts it for `fd`'s file.
template <typename Read>
ssize_t Counted(int fd, Read read) {
  TrackedFile* const file = FileOf(fd);
  if (file == nullptr) return read();
  const int64_t start_ns = NowNs();
  const ssize_t size = read();
  const int64_t end_ns = NowNs();
  file->reads.fetch_add(1, std::memory_order_relaxed);
  file->read_ns.fetch_add(end_ns - start_ns, std::memory_order_relaxed);
  if (size > 0) file->read_bytes.fetch_add(size, std::memory_order_relaxed);
  file->last_ns.store(end_ns, std::memory_order_relaxed);
  return size;
}

template <typename Function>
Function Next(const char* name, Function* cache) {
  if (*cache == nullptr) *cache = reinterpret_cast<Function>(NextSymbol(name));
  return *cache;
}

void* Map(void* address, size_t size, int protection, int flags, int fd,
          off_t offset) {
  void* const map = reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, size, protection, flags, fd, offset));
  if (TrackedFile* const file = FileOf(fd);
      file != nullptr && map != MAP_FAILED && (flags & MAP_ANONYMOUS) == 0) {
    file->mapped_bytes.fetch_add(size, std::memory_order_relaxed);
    file->last_ns.store(NowNs(), std::memory_order_relaxed);
  }
  return map;
}

bool HasMode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

}  // namespace
}  // namespace firstframe::shim

#pragma GCC visibility push(default)
extern "C" {

using namespace firstframe::shim;

#define FF_OPEN(name)                                     \
  int name(const char* path, int flags, ...) {            \
    mode_t mode = 0;                                      \
    if (HasMode(flags)) {                                 \
      va_list list;                                       \
      va_start(list, flags);                              \
      mode = va_arg(list, mode_t);                        \
      va_end(list);                                       \
    }                                                     \
    static int (*next)(const char*, int, ...) = nullptr;  \
    const int64_t start_ns = NowNs();                     \
    const int fd = Next(#name, &next)(path, flags, mode); \
    NoteOpen(path, fd, start_ns);                         \
    return fd;                                            \
  }
FF_OPEN(open)
FF_OPEN(open64)

#define FF_OPENAT(name)                                           \
  int name(int folder, const char* path, int flags, ...) {        \
    mode_t mode = 0;                                              \
    if (HasMode(flags)) {                                         \
      va_list list;                                               \
      va_start(list, flags);                                      \
      mode = va_arg(list, mode_t);                                \
      va_end(list);                                               \
    }                                                             \
    static int (*next)(int, const char*, int, ...) = nullptr;     \
    const int64_t start_ns = NowNs();                             \
    const int fd = Next(#name, &next)(folder, path, flags, mode); \
    NoteOpen(path, fd, start_ns);                                 \
    return fd;                                                    \
  }
FF_OPENAT(openat)
FF_OPENAT(openat64)

#define FF_FOPEN(name)                                             \
  FILE* name(const char* path, const char* mode) {                 \
    static FILE* (*next)(const char*, const char*) = nullptr;      \
    const int64_t start_ns = NowNs();                              \
    FILE* const file = Next(#name, &next)(path, mode);             \
    if (file != nullptr) NoteOpen(path, ::fileno(file), start_ns); \
    return file;                                                   \
  }
FF_FOPEN(fopen)
FF_FOPEN(fopen64)

ssize_t read(int fd, void* to, size_t size) {
  static ssize_t (*next)(int, void*, size_t) = nullptr;
  return Counted(fd, [&] { return Next("read", &next)(fd, to, size); });
}

#define FF_PREAD(name, Offset)                                                \
  ssize_t name(int fd, void* to, size_t size, Offset offset) {                \
    static ssize_t (*next)(int, void*, size_t, Offset) = nullptr;             \
    return Counted(fd,                                                        \
                   [&] { return Next(#name, &next)(fd, to, size, offset); }); \
  }
FF_PREAD(pread, off_t)
FF_PREAD(pread64, off64_t)

ssize_t readv(int fd, const iovec* vector, int count) {
  static ssize_t (*next)(int, const iovec*, int) = nullptr;
  return Counted(fd, [&] { return Next("readv", &next)(fd, vector, count); });
}

// By system call: allocators map memory before a symbol can be looked up.
void* mmap(void* address, size_t size, int protection, int flags, int fd,
           off_t offset) {
  return Map(address, size, protection, flags, fd, offset);
}
void* mmap64(void* address, size_t size, int protection, int flags, int fd,
             off64_t offset) {
  return Map(address, size, protection, flags, fd, offset);
}

}  // extern "C"
#pragma GCC visibility pop
