// Holds our declarations against the toolkit's own headers.

#include "lib/profiler/cupti_abi.h"

#include <cupti.h>

#include <cstddef>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

#define EXPECT_SAME(ours, our_field, theirs, their_field) \
  EXPECT_EQ(offsetof(cupti::ours, our_field), offsetof(theirs, their_field))

TEST(CuptiAbi, Records) {
  EXPECT_SAME(KernelRecord, start, CUpti_ActivityKernel10, start);
  EXPECT_SAME(KernelRecord, end, CUpti_ActivityKernel10, end);
  EXPECT_SAME(KernelRecord, registers_per_thread, CUpti_ActivityKernel10,
              registersPerThread);
  EXPECT_SAME(KernelRecord, device_id, CUpti_ActivityKernel10, deviceId);
  EXPECT_SAME(KernelRecord, stream_id, CUpti_ActivityKernel10, streamId);
  EXPECT_SAME(KernelRecord, grid, CUpti_ActivityKernel10, gridX);
  EXPECT_SAME(KernelRecord, block, CUpti_ActivityKernel10, blockX);
  EXPECT_SAME(KernelRecord, dynamic_shared_memory, CUpti_ActivityKernel10,
              dynamicSharedMemory);
  EXPECT_SAME(KernelRecord, correlation_id, CUpti_ActivityKernel10,
              correlationId);
  EXPECT_SAME(KernelRecord, name, CUpti_ActivityKernel10, name);
  EXPECT_SAME(KernelRecord, graph_node_id, CUpti_ActivityKernel10, graphNodeId);
  EXPECT_SAME(KernelRecord, graph_id, CUpti_ActivityKernel10, graphId);
  EXPECT_SAME(MemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
  EXPECT_SAME(MemcpyRecord, correlation_id, CUpti_ActivityMemcpy6,
              correlationId);
  EXPECT_SAME(MemcpyRecord, graph_id, CUpti_ActivityMemcpy6, graphId);
  EXPECT_SAME(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
  EXPECT_SAME(MemsetRecord, correlation_id, CUpti_ActivityMemset4,
              correlationId);
  EXPECT_SAME(MemsetRecord, graph_id, CUpti_ActivityMemset4, graphId);
  EXPECT_SAME(ApiRecord, cbid, CUpti_ActivityAPI, cbid);
  EXPECT_SAME(ApiRecord, correlation_id, CUpti_ActivityAPI, correlationId);
  EXPECT_SAME(ApiRecord, thread_id, CUpti_ActivityAPI, threadId);
  EXPECT_SAME(OverheadRecord, start, CUpti_ActivityOverhead3, start);
  EXPECT_SAME(OverheadRecord, end, CUpti_ActivityOverhead3, end);
  EXPECT_SAME(ExternalRecord, external_kind, CUpti_ActivityExternalCorrelation,
              externalKind);
  EXPECT_SAME(ExternalRecord, external_id, CUpti_ActivityExternalCorrelation,
              externalId);
  EXPECT_SAME(ExternalRecord, correlation_id, CUpti_ActivityExternalCorrelation,
              correlationId);
  EXPECT_SAME(CallbackData, correlation_data, CUpti_CallbackData,
              correlationData);
  EXPECT_SAME(CallbackData, correlation_id, CUpti_CallbackData, correlationId);
  EXPECT_SAME(CallbackData, context_uid, CUpti_CallbackData, contextUid);
  EXPECT_EQ(sizeof(cupti::SubscriberParams), sizeof(CUpti_SubscriberParams));
}

TEST(CuptiAbi, Constants) {
  EXPECT_EQ(int{cupti::kMemcpy}, int{CUPTI_ACTIVITY_KIND_MEMCPY});
  EXPECT_EQ(int{cupti::kMemset}, int{CUPTI_ACTIVITY_KIND_MEMSET});
  EXPECT_EQ(int{cupti::kDriver}, int{CUPTI_ACTIVITY_KIND_DRIVER});
  EXPECT_EQ(int{cupti::kRuntime}, int{CUPTI_ACTIVITY_KIND_RUNTIME});
  EXPECT_EQ(int{cupti::kConcurrentKernel},
            int{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  EXPECT_EQ(int{cupti::kOverhead}, int{CUPTI_ACTIVITY_KIND_OVERHEAD});
  EXPECT_EQ(cupti::kOverheadInstrumentation,
            int{CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION});
  EXPECT_EQ(cupti::kOverheadResource,
            int{CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE});
  EXPECT_EQ(cupti::kOverheadBufferRequest,
            int{CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST});
  EXPECT_EQ(int{cupti::kExternalCorrelation},
            int{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  EXPECT_EQ(cupti::kExternalOurs, int{CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2});
  EXPECT_EQ(cupti::kMultipleSubscribers,
            int{CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED});
  EXPECT_EQ(cupti::kMaxLimitReached, int{CUPTI_ERROR_MAX_LIMIT_REACHED});
  EXPECT_EQ(cupti::kAttributeDeviceBufferPoolLimit,
            int{CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT});
  EXPECT_EQ(cupti::kThreadIdSystem, int{CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM});
  EXPECT_EQ(cupti::kDomainDriver, int{CUPTI_CB_DOMAIN_DRIVER_API});
  EXPECT_EQ(cupti::kDomainRuntime, int{CUPTI_CB_DOMAIN_RUNTIME_API});
  EXPECT_EQ(cupti::kSiteEnter, int{CUPTI_API_ENTER});
  EXPECT_EQ(cupti::kSiteExit, int{CUPTI_API_EXIT});
  EXPECT_EQ(cupti::kFlushForced, uint32_t{CUPTI_ACTIVITY_FLAG_FLUSH_FORCED});
}

}  // namespace
}  // namespace firstframe
