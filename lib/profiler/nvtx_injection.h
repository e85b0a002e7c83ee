// Takes the NVTX ranges that a program pushes, in place of a profiler.
//
// A library of ours that exports
//
//   extern "C" int InitializeInjectionNvtx2(void* get_export_table) {
//     return firstframe::AttachNvtx(get_export_table, &handler);
//   }
//
// and is named by NVTX_INJECTION64_PATH is loaded at the program's first NVTX
// call, once for every shared object that brings NVTX. Works on machines
// without a GPU. NVTX's tables are declared in nvtx_abi.h; no NVTX header is
// needed to build.

#ifndef LIB_PROFILER_NVTX_INJECTION_H_
#define LIB_PROFILER_NVTX_INJECTION_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace firstframe {

// Called on the thread that made the NVTX call, at once. Names are UTF-8 and
// last until the call returns; wide strings are converted. Domains are not told
// apart: a range is its name.
class NvtxHandler {
 public:
  virtual ~NvtxHandler() = default;
  virtual void OnPush(absl::string_view name) = 0;
  virtual void OnPop() = 0;
  // Start and end may be on different threads.
  virtual uint64_t OnStart(absl::string_view name) = 0;
  virtual void OnEnd(uint64_t range) = 0;
};

// Puts our functions into the tables that `get_export_table` leads to. Returns
// 1 (NVTX's word for success), or 0 when the tables are not what we know; the
// program then runs without us. `handler` must live as long as the process.
int AttachNvtx(void* get_export_table, NvtxHandler* handler);

}  // namespace firstframe

#endif  // LIB_PROFILER_NVTX_INJECTION_H_
