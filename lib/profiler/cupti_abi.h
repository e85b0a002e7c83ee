// The part of CUPTI's interface that we use, declared here so that no toolkit
// is needed to build and so that one binary works with CUPTI 12 and 13.
//
// Structures are the prefixes that CUPTI 12.0 to 13.0 share: newer versions of
// a record only append. Values and layouts: cupti_activity.h and
// cupti_callbacks.h of CUDA 13.0; cupti_abi_test.cc holds them against the
// toolkit's own headers where it is installed.

#ifndef LIB_PROFILER_CUPTI_ABI_H_
#define LIB_PROFILER_CUPTI_ABI_H_

#include <cstddef>
#include <cstdint>

namespace firstframe::cupti {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kMaxLimitReached = 12;
inline constexpr Result kMultipleSubscribers = 39;

// CUpti_ActivityKind.
enum Kind : int32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kExternalCorrelation = 39,
};

#define FF_CUPTI_RECORD struct __attribute__((packed, aligned(8)))

FF_CUPTI_RECORD KernelRecord {  // CUpti_ActivityKernel9, 10
  int32_t kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  int32_t partitioned_requested;
  int32_t partitioned_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared_memory;
  int32_t dynamic_shared_memory;
  uint32_t local_memory_per_thread;
  uint32_t local_memory_total;
  uint32_t correlation_id;
  int64_t grid_id;
  const char* name;
  void* reserved0;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t carveout_requested;
  uint8_t carveout;
  uint8_t padding;
  uint32_t shared_memory_executed;
  uint64_t graph_node_id;
  int32_t shmem_limit_config;
  uint32_t graph_id;
};

FF_CUPTI_RECORD MemcpyRecord {  // CUpti_ActivityMemcpy5, 6
  int32_t kind;
  uint8_t copy_kind;
  uint8_t src_kind;
  uint8_t dst_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint32_t runtime_correlation_id;
  uint32_t pad;
  void* reserved0;
  uint64_t graph_node_id;
  uint32_t graph_id;
};

FF_CUPTI_RECORD MemsetRecord {  // CUpti_ActivityMemset3, 4
  int32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device_id;
  uint32_t context_id;
  uint32_t stream_id;
  uint32_t correlation_id;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t pad;
  void* reserved0;
  uint64_t graph_node_id;
  uint32_t graph_id;
};

FF_CUPTI_RECORD ApiRecord {  // CUpti_ActivityAPI
  int32_t kind;
  uint32_t cbid;
  uint64_t start;
  uint64_t end;
  uint32_t process_id;
  uint32_t thread_id;
  uint32_t correlation_id;
  uint32_t return_value;
};

FF_CUPTI_RECORD ExternalRecord {  // CUpti_ActivityExternalCorrelation
  int32_t kind;
  int32_t external_kind;
  uint64_t external_id;
  uint32_t correlation_id;
  uint32_t reserved;
};

FF_CUPTI_RECORD OverheadRecord {  // CUpti_ActivityOverhead .. 3
  int32_t kind;
  int32_t overhead_kind;
  int32_t object_kind;
  union {
    struct {
      uint32_t process_id;
      uint32_t thread_id;
    } pt;
    struct {
      uint32_t device_id;
      uint32_t context_id;
      uint32_t stream_id;
    } dcs;
  } object;
  uint64_t start;
  uint64_t end;
};

#undef FF_CUPTI_RECORD

// CUpti_SubscriberParams.
struct SubscriberParams {
  size_t struct_size;
  const char* subscriber_name;
  char* old_subscriber_name;
  size_t old_subscriber_size;
};
inline constexpr size_t kOldSubscriberNameBytes = 64;

// CUpti_CallbackData, and CUpti_ApiCallbackSite.
struct CallbackData {
  int32_t site;
  const char* function_name;
  const void* parameters;
  void* return_value;
  const char* symbol_name;
  void* context;
  uint32_t context_uid;
  uint64_t* correlation_data;  // ours, from a call's entry to its exit
  uint32_t correlation_id;
};
inline constexpr int32_t kSiteEnter = 0;
inline constexpr int32_t kSiteExit = 1;

// CUpti_CallbackDomain.
inline constexpr int kDomainDriver = 1;
inline constexpr int kDomainRuntime = 2;

// CUpti_ActivityOverheadKind: those that CUPTI itself is the cause of, in the
// program's threads. Not among them: compiling and loading of code, waiting for
// room in the device's queue, and the delivery of buffers by CUPTI's thread.
inline constexpr int32_t kOverheadInstrumentation = 2 << 16;
inline constexpr int32_t kOverheadResource = 3 << 16;
inline constexpr int32_t kOverheadBufferRequest = 7 << 16;

// CUpti_ExternalCorrelationKind: CUSTOM2. Kineto uses the other two.
inline constexpr int kExternalOurs = 5;

// CUpti_ActivityAttribute.
inline constexpr int kAttributeDeviceBufferBytes = 0;
inline constexpr int kAttributeDeviceBufferPoolLimit = 2;

// CUpti_ActivityThreadIdType: the kernel's thread id, as gettid returns it.
inline constexpr int kThreadIdSystem = 1;

inline constexpr uint32_t kFlushForced = 1;

}  // namespace firstframe::cupti

#endif  // LIB_PROFILER_CUPTI_ABI_H_
