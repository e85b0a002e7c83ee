// dlopen and dlsym.
//
// glibc resolves RUNPATHs, $ORIGIN and RTLD_NEXT by the caller's address, so a
// hook that calls on in the usual way would change what a program loads. The
// entries below are a few instructions: they ask a C function where to go and
// jump there, with the caller's return address in place. Calls whose outcome
// depends on the caller jump to glibc itself and are seen only as a moment in
// time.

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "lib/observe/shim/cuda_hooks.h"
#include "lib/observe/shim/record.h"

namespace firstframe::shim {
namespace {

using Dlopen = void* (*)(const char*, int);
using Dlsym = void* (*)(void*, const char*);

// glibc 2.34 moved both into libc.so under a new version.
void* Versioned(const char* name) {
#if defined(__aarch64__)
  constexpr const char* kOldest = "GLIBC_2.17";
#else
  constexpr const char* kOldest = "GLIBC_2.2.5";
#endif
  void* const found = ::dlvsym(RTLD_NEXT, name, "GLIBC_2.34");
  return found != nullptr ? found : ::dlvsym(RTLD_NEXT, name, kOldest);
}

Dlopen NextDlopen() {
  static Dlopen next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlopen>(Versioned("dlopen"));
  return next;
}

Dlsym NextDlsym() {
  static Dlsym next = nullptr;
  if (next == nullptr) next = reinterpret_cast<Dlsym>(Versioned("dlsym"));
  return next;
}

// The libraries seen so far, by load address: an open-addressed set.
constexpr size_t kSeenSlots = 4096;
uintptr_t seen[kSeenSlots];
unsigned long long seen_adds = 0;

bool Insert(uintptr_t address) {
  size_t slot = (address >> 12) * 0x9E3779B1u % kSeenSlots;
  for (size_t probes = 0; probes < kSeenSlots; ++probes) {
    if (seen[slot] == address) return false;
    if (seen[slot] == 0) {
      seen[slot] = address;
      return true;
    }
    slot = (slot + 1) % kSeenSlots;
  }
  return false;
}

struct Walk {
  int64_t now_ns;
  uint64_t added;
};

int OnLibrary(dl_phdr_info* info, size_t, void* data) {
  auto* const walk = static_cast<Walk*>(data);
  // Counts loads since the process began: nothing to see when it stands still.
  if (info->dlpi_adds == seen_adds && walk->added == 0) return 1;
  uint64_t bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_LOAD) {
      bytes += info->dlpi_phdr[i].p_memsz;
    }
  }
  // The program itself has no name here, and may sit at address 0.
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  if (!Insert(info->dlpi_addr)) return 0;
  ++walk->added;
  Record({.kind = EventKind::kLibrary,
          .name = info->dlpi_name,
          .start_ns = walk->now_ns,
          .end_ns = walk->now_ns,
          .value = bytes});
  return 0;
}

int OnAdds(dl_phdr_info* info, size_t, void* data) {
  *static_cast<unsigned long long*>(data) = info->dlpi_adds;
  return 1;
}

void* TimedDlopen(const char* path, int flags) {
  const int64_t start_ns = NowNs();
  void* const handle = NextDlopen()(path, flags);
  const int64_t end_ns = NowNs();
  const KeepErrno keep;
  const uint64_t added = LogNewLibraries();
  if (added > 0) {
    Record({.kind = EventKind::kDlopen,
            .name = path,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .value = added});
  }
  return handle;
}

}  // namespace

uint64_t LogNewLibraries() {
  static std::atomic<int> busy;
  if (busy.exchange(1) != 0) return 0;  // another thread logs them
  Walk walk = {.now_ns = NowNs(), .added = 0};
  ::dl_iterate_phdr(OnLibrary, &walk);
  ::dl_iterate_phdr(OnAdds, &seen_adds);
  busy.store(0);
  return walk.added;
}

}  // namespace firstframe::shim

extern "C" {

void* ff_startup_route_dlopen(const char* path, int flags) {
  using namespace firstframe::shim;
  // A bare name is looked up along the caller's RUNPATH, and $ORIGIN is the
  // caller's folder.
  const bool by_caller = path == nullptr || strchr(path, '/') == nullptr ||
                         strchr(path, '$') != nullptr;
  if (Header() == nullptr || by_caller || (flags & RTLD_NOLOAD) != 0) {
    return reinterpret_cast<void*>(NextDlopen());
  }
  return reinterpret_cast<void*>(TimedDlopen);
}

void* ff_startup_route_dlsym(void* handle, const char*) {
  using namespace firstframe::shim;
  if (Header() == nullptr || handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
    return reinterpret_cast<void*>(NextDlsym());
  }
  return reinterpret_cast<void*>(&ff_startup_hooked_dlsym);
}

void* ff_startup_hooked_dlsym(void* handle, const char* name) {
  using namespace firstframe::shim;
  void* const found = NextDlsym()(handle, name);
  return found == nullptr || name == nullptr
             ? found
             : HookCudaSymbol(
                   name, found,
                   [](void* from, const char* wanted) {
                     return NextDlsym()(from, wanted);
                   },
                   handle);
}

}  // extern "C"

#if defined(__x86_64__)
// Two arguments are kept over the call; 8 more bytes align the stack to 16.
#define FF_ROUTE(name)                                             \
  asm(".text\n.globl " #name "\n.type " #name ",@function\n" #name \
      ":\n"                                                        \
      "  endbr64\n"                                                \
      "  push %rdi\n  push %rsi\n  sub $8, %rsp\n"                 \
      "  call ff_startup_route_" #name                             \
      "@PLT\n"                                                     \
      "  add $8, %rsp\n  pop %rsi\n  pop %rdi\n"                   \
      "  jmp *%rax\n"                                              \
      ".size " #name ", .-" #name "\n")
#elif defined(__aarch64__)
#define FF_ROUTE(name)                                             \
  asm(".text\n.globl " #name "\n.type " #name ",%function\n" #name \
      ":\n"                                                        \
      "  stp x29, x30, [sp, #-32]!\n"                              \
      "  stp x0, x1, [sp, #16]\n"                                  \
      "  bl ff_startup_route_" #name                               \
      "\n"                                                         \
      "  mov x16, x0\n"                                            \
      "  ldp x0, x1, [sp, #16]\n"                                  \
      "  ldp x29, x30, [sp], #32\n"                                \
      "  br x16\n"                                                 \
      ".size " #name ", .-" #name "\n")
#else
#error "write the two jumps for this processor"
#endif

FF_ROUTE(dlopen);
FF_ROUTE(dlsym);
