// Shared-memory barriers and the bulk copies that complete on them.
//
// Source: PTX ISA 9.0, "mbarrier" and "cp.async.bulk".

#ifndef LIB_WAN_VAE_CUDA_BARRIER_CUH_
#define LIB_WAN_VAE_CUDA_BARRIER_CUH_

#include <cstdint>

#include "cuda.h"

namespace firstframe::cuda {

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void BarrierInit(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier),
               "r"(arrivals));
}

// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void BarrierInitFence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

__device__ __forceinline__ void BarrierArrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier)
               : "memory");
}

// Arrives, and makes the phase wait for `bytes` more of copied data.
__device__ __forceinline__ void BarrierExpect(uint32_t barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

// Waits for the phase of parity `parity` to complete.
__device__ __forceinline__ void BarrierWait(uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "retry:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra retry;\n"
      "finished:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Copies `bytes` (a multiple of 16) from global to shared memory.
__device__ __forceinline__ void BulkLoad(uint32_t to, const void* from,
                                         int bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Copies the box of `map` at (c, x, y, slot); what lies outside is zero.
__device__ __forceinline__ void TensorLoad(uint32_t to, const CUtensorMap* map,
                                           int c, int x, int y, int slot,
                                           uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];\n" ::
          "r"(to),
      "l"(map), "r"(c), "r"(x), "r"(y), "r"(slot), "r"(barrier)
      : "memory");
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_BARRIER_CUH_
