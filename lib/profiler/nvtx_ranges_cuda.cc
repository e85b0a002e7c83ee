#include "lib/profiler/nvtx_ranges.h"
#include "nvtx3/nvToolsExt.h"

namespace firstframe {

void NvtxPush(const char* name) { nvtxRangePushA(name); }
void NvtxPop() { nvtxRangePop(); }

}  // namespace firstframe
