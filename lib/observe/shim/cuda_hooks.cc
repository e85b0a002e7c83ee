#include "lib/observe/shim/cuda_hooks.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#include "lib/observe/shim/record.h"

namespace firstframe::shim {
namespace {

// Every driver function takes integers and pointers only, twelve at most. So
// one type fits all: words beyond a function's own arguments are read from the
// caller's frame and ignored by the function (System V x86-64 and AAPCS64 agree
// on this).
using Word = uintptr_t;
using Function = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word,
                         Word, Word, Word);

enum class Role : uint8_t {
  kInit,
  kContext,
  kLaunch,
  kCopy,  // either way: ask the driver which
  kSum,   // counts towards a CudaSum
  kGetProcAddress,
  kGetProcAddressV2,
};

struct Watched {
  const char* name;  // without a version or stream suffix
  Role role;
  int8_t sum = -1;         // CudaSum
  int8_t bytes_word = -1;  // which argument holds the bytes
};

constexpr Watched kWatched[] = {
    {"cuInit", Role::kInit},
    {"cuDevicePrimaryCtxRetain", Role::kContext},
    {"cuCtxCreate", Role::kContext},
    {"cuModuleLoad", Role::kSum, kCudaModule},
    {"cuModuleLoadData", Role::kSum, kCudaModule},
    {"cuModuleLoadDataEx", Role::kSum, kCudaModule},
    {"cuModuleLoadFatBinary", Role::kSum, kCudaModule},
    {"cuModuleGetFunction", Role::kSum, kCudaModule},
    {"cuLibraryLoadData", Role::kSum, kCudaModule},
    {"cuLibraryLoadFromFile", Role::kSum, kCudaModule},
    {"cuLibraryGetModule", Role::kSum, kCudaModule},
    {"cuLibraryGetKernel", Role::kSum, kCudaModule},
    {"cuKernelGetFunction", Role::kSum, kCudaModule},
    {"cuMemAlloc", Role::kSum, kCudaAllocate, 1},
    {"cuMemAllocAsync", Role::kSum, kCudaAllocate, 1},
    {"cuMemAllocFromPoolAsync", Role::kSum, kCudaAllocate, 1},
    {"cuMemCreate", Role::kSum, kCudaAllocate, 1},
    {"cuMemHostAlloc", Role::kSum, kCudaPin, 1},
    {"cuMemAllocHost", Role::kSum, kCudaPin, 1},
    {"cuMemHostRegister", Role::kSum, kCudaPin, 1},
    {"cuMemcpyHtoD", Role::kSum, kCudaHostToDevice, 2},
    {"cuMemcpyHtoDAsync", Role::kSum, kCudaHostToDevice, 2},
    {"cuMemcpyDtoH", Role::kSum, kCudaDeviceToHost, 2},
    {"cuMemcpyDtoHAsync", Role::kSum, kCudaDeviceToHost, 2},
    {"cuMemcpy", Role::kCopy, -1, 2},
    {"cuMemcpyAsync", Role::kCopy, -1, 2},
    {"cuStreamSynchronize", Role::kSum, kCudaWait},
    {"cuEventSynchronize", Role::kSum, kCudaWait},
    {"cuCtxSynchronize", Role::kSum, kCudaWait},
    {"cuLaunchKernel", Role::kLaunch},
    {"cuLaunchKernelEx", Role::kLaunch},
    {"cuLaunchCooperativeKernel", Role::kLaunch},
    {"cuGraphLaunch", Role::kLaunch},
    {"cuGetProcAddress", Role::kGetProcAddress},
    {"cuGetProcAddress_v2", Role::kGetProcAddressV2},
};

// Shorter calls of these many only add to their sum.
constexpr int64_t kMinEventNs = 200000;

// A hooked address. The same function may come in several (per-thread streams,
// versions); each keeps its own.
struct Slot {
  Function real = nullptr;
  const Watched* watched = nullptr;
};
constexpr size_t kNumSlots = 160;
Slot slots[kNumSlots];
size_t num_slots = 0;
pthread_mutex_t slots_mutex = PTHREAD_MUTEX_INITIALIZER;

// cuPointerGetAttribute, to tell the direction of a copy.
using PointerGetAttribute = int (*)(void*, int, Word);
PointerGetAttribute pointer_get_attribute = nullptr;

// CUmemorytype; 0 for memory that the driver does not know: pageable.
unsigned MemoryType(Word address) {
  constexpr int kMemoryType = 2;
  unsigned type = 0;
  const bool is_known = pointer_get_attribute != nullptr &&
                        pointer_get_attribute(&type, kMemoryType, address) == 0;
  return is_known ? type : 0;
}
bool IsOnDevice(Word address) { return MemoryType(address) == 2; }
bool IsPageLocked(Word address) { return MemoryType(address) == 1; }

// Returns the CudaSum of a copy from `from` to `to`, or -1 within the device.
int CopySum(Word to, Word from) {
  const bool to_device = IsOnDevice(to), from_device = IsOnDevice(from);
  if (to_device == from_device) return -1;
  return to_device ? kCudaHostToDevice : kCudaDeviceToHost;
}

// Whether the call of `watched` may return before its data has moved.
bool IsSubmission(const Watched& watched, int sum, Word to, Word from) {
  if (strstr(watched.name, "Async") == nullptr) return false;
  return (sum == kCudaHostToDevice && IsPageLocked(from)) ||
         (sum == kCudaDeviceToHost && IsPageLocked(to));
}

void NoteSum(int index, const Watched& watched, int64_t start_ns,
             int64_t end_ns, uint64_t bytes, bool is_submission) {
  CallSum& sum = Header()->cuda[index];
  const bool is_first = sum.calls.fetch_add(1, std::memory_order_relaxed) == 0;
  sum.ns.fetch_add(end_ns - start_ns, std::memory_order_relaxed);
  sum.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (is_submission) {
    sum.submitted_ns.fetch_add(end_ns - start_ns, std::memory_order_relaxed);
    sum.submitted_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  if (!is_first && end_ns - start_ns < kMinEventNs) return;
  Record({.kind = EventKind::kCuda,
          .name = watched.name,
          .start_ns = start_ns,
          .end_ns = end_ns,
          .value = bytes,
          .slot = static_cast<uint32_t>(index) + 1});
}

int OnProcAddress(const Watched& watched, Function real, Word symbol, Word out,
                  Word version, Word flags, Word status);

template <size_t kSlot>
int Hook(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i,
         Word j, Word k, Word l) {
  const Slot& slot = slots[kSlot];
  const Watched& watched = *slot.watched;
  const auto call = [&] {
    return slot.real(a, b, c, d, e, f, g, h, i, j, k, l);
  };
  EventHeader* const header = Header();
  if (header == nullptr) return call();
  if (watched.role == Role::kLaunch &&
      header->first_kernel_ns.load(std::memory_order_relaxed) != 0) {
    return call();
  }
  if (watched.role == Role::kGetProcAddress ||
      watched.role == Role::kGetProcAddressV2) {
    return OnProcAddress(watched, slot.real, a, b, c, d, e);
  }
  const int64_t start_ns = NowNs();
  const int result = call();
  const int64_t end_ns = NowNs();
  if (watched.role == Role::kSum || watched.role == Role::kCopy) {
    const Word words[] = {a, b, c};
    const uint64_t bytes =
        watched.bytes_word >= 0 && result == 0 ? words[watched.bytes_word] : 0;
    const int sum = watched.role == Role::kSum ? watched.sum : CopySum(a, b);
    if (sum >= 0) {
      NoteSum(sum, watched, start_ns, end_ns, bytes,
              IsSubmission(watched, sum, a, b));
    }
    return result;
  }
  if (watched.role == Role::kLaunch) {
    int64_t none = 0;
    if (!header->first_kernel_ns.compare_exchange_strong(none, end_ns)) {
      return result;
    }
  } else if (end_ns - start_ns < kMinEventNs / 10) {
    return result;  // a context that was there already
  }
  Record({.kind = EventKind::kCuda,
          .name = watched.name,
          .start_ns = start_ns,
          .end_ns = end_ns});
  return result;
}

template <size_t... kIndex>
constexpr auto MakeHooks(std::index_sequence<kIndex...>) {
  struct Hooks {
    Function at[sizeof...(kIndex)];
  };
  return Hooks{{&Hook<kIndex>...}};
}
constexpr auto kHooks = MakeHooks(std::make_index_sequence<kNumSlots>());

// Whether `name` is `base` with nothing but a version or stream suffix after.
bool Matches(const char* name, const char* base) {
  const size_t length = strlen(base);
  if (strncmp(name, base, length) != 0) return false;
  const char* rest = name + length;
  while (*rest != '\0') {
    if (strncmp(rest, "_v", 2) == 0 && rest[2] >= '2' && rest[2] <= '9') {
      rest += 3;
    } else if (strncmp(rest, "_ptsz", 5) == 0 ||
               strncmp(rest, "_ptds", 5) == 0) {
      rest += 5;
    } else {
      return false;
    }
  }
  return true;
}

const Watched* FindWatched(const char* name) {
  if (name[0] != 'c' || name[1] != 'u') return nullptr;
  for (const Watched& watched : kWatched) {
    const bool is_exact = watched.role == Role::kGetProcAddress ||
                          watched.role == Role::kGetProcAddressV2;
    if (is_exact ? strcmp(name, watched.name) == 0
                 : Matches(name, watched.name)) {
      return &watched;
    }
  }
  return nullptr;
}

void* HookOf(const Watched& watched, void* found) {
  const auto real = reinterpret_cast<Function>(found);
  pthread_mutex_lock(&slots_mutex);
  void* result = found;
  size_t slot = 0;
  while (slot < num_slots && slots[slot].real != real &&
         reinterpret_cast<void*>(kHooks.at[slot]) != found) {
    ++slot;
  }
  if (slot < num_slots) {
    result = reinterpret_cast<void*>(kHooks.at[slot]);
  } else if (num_slots < kNumSlots) {
    slots[slot] = {.real = real, .watched = &watched};
    ++num_slots;
    result = reinterpret_cast<void*>(kHooks.at[slot]);
  }
  pthread_mutex_unlock(&slots_mutex);
  return result;
}

int OnProcAddress(const Watched& watched, Function real, Word symbol, Word out,
                  Word version, Word flags, Word status) {
  const int result =
      real(symbol, out, version, flags, status, 0, 0, 0, 0, 0, 0, 0);
  auto* const name = reinterpret_cast<const char*>(symbol);
  auto** const address = reinterpret_cast<void**>(out);
  if (result != 0 || name == nullptr || address == nullptr ||
      *address == nullptr) {
    return result;
  }
  const Watched* wanted = FindWatched(name);
  if (wanted == nullptr) return result;
  if (wanted->role == Role::kGetProcAddress && version >= 12000) {
    // The same name has had a fifth argument since CUDA 12.
    wanted = FindWatched("cuGetProcAddress_v2");
  }
  *address = HookOf(*wanted, *address);
  (void)watched;
  return result;
}

}  // namespace

void* HookCudaSymbol(const char* name, void* found, SymbolLookup lookup,
                     void* handle) {
  const Watched* const watched = FindWatched(name);
  if (watched == nullptr) return found;
  if (pointer_get_attribute == nullptr) {
    pointer_get_attribute = reinterpret_cast<PointerGetAttribute>(
        lookup(handle, "cuPointerGetAttribute"));
  }
  return HookOf(*watched, found);
}

}  // namespace firstframe::shim
