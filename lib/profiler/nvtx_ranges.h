// NVTX ranges, where the CUDA toolkit's headers were there to build with; else
// nothing. A push with no tool attached is one load and one branch.

#ifndef LIB_PROFILER_NVTX_RANGES_H_
#define LIB_PROFILER_NVTX_RANGES_H_

namespace firstframe {

void NvtxPush(const char* name);
void NvtxPop();

}  // namespace firstframe

#endif  // LIB_PROFILER_NVTX_RANGES_H_
