// The file in which an observed process leaves its events: one per process
// image, mapped by libfirstframe_startup.so and written without system calls,
// so that it survives whatever end the process comes to. Shared by the writer
// (a freestanding library inside somebody else's program) and the reader.
//
// Layout: EventHeader, then events up to `used` bytes, each 8-byte aligned. The
// writer reserves room by adding to `used`, and stores an event's size last: a
// reader stops at a size of 0.

#ifndef LIB_OBSERVE_EVENT_FORMAT_H_
#define LIB_OBSERVE_EVENT_FORMAT_H_

#include <atomic>
#include <cstdint>

namespace firstframe {

inline constexpr char kEventMagic[8] = {'F', 'F', 'S', 'T', 'A', 'R', 'T', '1'};
// Some 20,000 events; a run that imports PyTorch has a few hundred.
inline constexpr uint64_t kEventFileBytes = 2u << 20;
inline constexpr int kMaxTrackedFiles = 64;

// Set by the launcher: the folder for event files.
inline constexpr char kEventFolderVariable[] = "FIRSTFRAME_STARTUP_DIR";

// Set, to anything: Python programs also list the files of their modules.
inline constexpr char kListFilesVariable[] = "FIRSTFRAME_STARTUP_LIST_FILES";

// Times are CLOCK_MONOTONIC, in nanoseconds; 0 where it did not happen.
enum class EventKind : uint16_t {
  kDlopen = 1,   // name: path; value: libraries it added
  kLibrary = 2,  // name: path; value: bytes of its segments; start == end
  kFile = 3,     // name: path of a checkpoint; value: size; slot
  kCuda = 4,     // name: driver function; value: bytes moved
  kRegion = 5,   // name: NVTX range; value: depth
};

struct EventRecord {
  std::atomic<uint32_t> size;  // of the record with its name, a multiple of 8
  uint32_t tid;
  EventKind kind;
  uint16_t name_size;  // the name follows the struct
  uint32_t slot;       // kFile: 1 + index into EventHeader::files, or 0
  int64_t start_ns;
  int64_t end_ns;
  uint64_t value;
};
static_assert(sizeof(EventRecord) == 40);

// Sums over all calls of a kind, also of those too short for an event.
struct CallSum {
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> ns;
  std::atomic<uint64_t> bytes;
  // Of those, asynchronous copies of page-locked memory: their calls return
  // before the data has moved, so their time says nothing of a rate.
  std::atomic<uint64_t> submitted_ns;
  std::atomic<uint64_t> submitted_bytes;
};

enum CudaSum {
  kCudaModule,        // loading of code
  kCudaAllocate,      // device memory
  kCudaPin,           // page-locked host memory
  kCudaHostToDevice,  // copies
  kCudaDeviceToHost,
  kCudaWait,  // the host waits for the device
  kNumCudaSums,
};

struct TrackedFile {
  std::atomic<uint64_t> reads;
  std::atomic<uint64_t> read_bytes;
  std::atomic<uint64_t> read_ns;
  std::atomic<uint64_t> mapped_bytes;
  std::atomic<int64_t> last_ns;  // the end of the last read
};

struct EventHeader {
  char magic[8];
  std::atomic<uint64_t> used;  // bytes of events, may exceed the room
  std::atomic<uint64_t> dropped;
  uint64_t pid;
  uint64_t parent_pid;
  int64_t start_ns;  // the library's constructor, or the fork
  uint64_t is_fork;  // begun by fork without exec
  std::atomic<int64_t> main_ns;
  std::atomic<int64_t> exit_ns;          // main returned, or exit was called
  std::atomic<int64_t> first_region_ns;  // its begin, should it never end
  std::atomic<int64_t> first_kernel_ns;  // its launch returned
  std::atomic<uint64_t> num_files;       // slots taken, may exceed the room
  CallSum cuda[kNumCudaSums];
  TrackedFile files[kMaxTrackedFiles];
  uint32_t command_size;
  char command[2044];  // arguments, each with its end of string
};

}  // namespace firstframe

#endif  // LIB_OBSERVE_EVENT_FORMAT_H_
