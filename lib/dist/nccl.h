// The few functions of NCCL that a transport needs, found at run time.
//
// Declared here rather than by nccl.h, which not every toolkit has: the names,
// constants and the layout of the configuration are those of NCCL 2.18, which
// later 2.x releases accept (nccl.h of NCCL 2.28.9, read 2026-11).

#ifndef LIB_DIST_NCCL_H_
#define LIB_DIST_NCCL_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"

namespace firstframe {

struct NcclCommunicator;  // ncclComm, opaque

struct NcclUniqueId {
  char internal[128];
};

// ncclConfig_v21800: the first with every member used here.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN;  // INT_MIN: undefined, NCCL decides
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclUint8 = 1;

struct Nccl {
  // Opens the library. Unavailable, with the packages that bring it.
  static absl::StatusOr<Nccl> Load(const cuda::LibrarySearch& search);

  // Turns a result into a status with the library's own text. InProgress is OK.
  absl::Status ToStatus(int result, const char* call) const;

  std::string path;
  int version = 0;  // 22809 for 2.28.9

  int (*GetUniqueId)(NcclUniqueId*) = nullptr;
  int (*CommInitRankConfig)(NcclCommunicator**, int, NcclUniqueId, int,
                            NcclConfig*) = nullptr;
  int (*CommGetAsyncError)(NcclCommunicator*, int*) = nullptr;
  int (*CommFinalize)(NcclCommunicator*) = nullptr;
  int (*CommDestroy)(NcclCommunicator*) = nullptr;
  int (*CommAbort)(NcclCommunicator*) = nullptr;
  int (*Broadcast)(const void*, void*, size_t, int, int, NcclCommunicator*,
                   cuda::StreamHandle) = nullptr;
  int (*AllGather)(const void*, void*, size_t, int, NcclCommunicator*,
                   cuda::StreamHandle) = nullptr;
  const char* (*GetErrorString)(int) = nullptr;
};

}  // namespace firstframe

#endif  // LIB_DIST_NCCL_H_
