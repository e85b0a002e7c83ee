#include "lib/observe/shim/record.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace firstframe::shim {
namespace {

// In the part of thread-local storage that is laid out at start: a preloaded
// library is there by then.
__thread uint32_t thread_id __attribute__((tls_model("initial-exec"))) = 0;

EventHeader* header = nullptr;
char folder[512];

constexpr uint64_t kRoom = kEventFileBytes - sizeof(EventHeader);
constexpr size_t kMaxName = 1000;

// System calls as such: the functions are hooked by this library.
int Open(const char* path, int flags, int mode) {
  return static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
}

void ReadCommand() {
  const int fd = Open("/proc/self/cmdline", O_RDONLY, 0);
  if (fd < 0) return;
  const ssize_t size =
      ::syscall(SYS_read, fd, header->command, sizeof(header->command));
  header->command_size = size > 0 ? static_cast<uint32_t>(size) : 0;
  ::syscall(SYS_close, fd);
}

void MapFile(bool is_fork) {
  header = nullptr;
  const int64_t start_ns = NowNs();
  char path[600];
  ::snprintf(path, sizeof(path), "%s/events.%d.%lld.bin", folder,
             static_cast<int>(::getpid()), static_cast<long long>(start_ns));
  const int fd = Open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0) return;
  void* map = MAP_FAILED;
  // Room that is taken now cannot be found missing later, by SIGBUS.
  if (::syscall(SYS_fallocate, fd, 0, off_t{0}, off_t{kEventFileBytes}) == 0) {
    map = reinterpret_cast<void*>(::syscall(SYS_mmap, nullptr, kEventFileBytes,
                                            PROT_READ | PROT_WRITE, MAP_SHARED,
                                            fd, 0));
  }
  ::syscall(SYS_close, fd);
  if (map == MAP_FAILED) return;
  header = static_cast<EventHeader*>(map);
  header->pid = ::getpid();
  header->parent_pid = ::getppid();
  header->start_ns = start_ns;
  header->is_fork = is_fork;
  ReadCommand();
  memcpy(header->magic, kEventMagic, sizeof(kEventMagic));
}

// The mapping is shared with the parent: the child takes one of its own.
void AfterForkInChild() {
  thread_id = 0;
  if (header == nullptr) return;
  const KeepErrno keep;
  ::munmap(header, kEventFileBytes);
  MapFile(/*is_fork=*/true);
}

__attribute__((constructor)) void Begin() {
  const char* const variable = ::getenv(kEventFolderVariable);
  if (variable == nullptr || variable[0] != '/') return;
  const size_t size = strlen(variable);
  if (size >= sizeof(folder)) return;
  memcpy(folder, variable, size + 1);
  const KeepErrno keep;
  MapFile(/*is_fork=*/false);
  ::pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

}  // namespace

KeepErrno::KeepErrno() : saved_(errno) {}
KeepErrno::~KeepErrno() { errno = saved_; }

int64_t NowNs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

EventHeader* Header() { return header; }

void Record(const Event& event) {
  EventHeader* const to = header;
  if (to == nullptr) return;
  if (thread_id == 0) {
    thread_id = static_cast<uint32_t>(::syscall(SYS_gettid));
  }
  const char* name = event.name;
  size_t length = strlen(name);
  if (length > kMaxName) {
    name += length - kMaxName;
    length = kMaxName;
  }
  const uint32_t size =
      static_cast<uint32_t>((sizeof(EventRecord) + length + 7) & ~size_t{7});
  const uint64_t at = to->used.fetch_add(size, std::memory_order_relaxed);
  if (at + size > kRoom) {
    to->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  char* const bytes = reinterpret_cast<char*>(to + 1) + at;
  auto* const record = reinterpret_cast<EventRecord*>(bytes);
  record->tid = thread_id;
  record->kind = event.kind;
  record->name_size = static_cast<uint16_t>(length);
  record->slot = event.slot;
  record->start_ns = event.start_ns;
  record->end_ns = event.end_ns;
  record->value = event.value;
  memcpy(bytes + sizeof(EventRecord), name, length);
  record->size.store(size, std::memory_order_release);
}

void* NextSymbol(const char* name) { return ::dlsym(RTLD_NEXT, name); }

}  // namespace firstframe::shim
