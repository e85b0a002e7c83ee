// Reads files straight into device memory through cuFile (GPUDirect Storage),
// where that is what happens.
//
// cuFile also has a mode in which it reads into host memory and copies, and
// uses it without a word. Here that mode is asked for only after the direct one
// was refused, and the report says which it was and why. So far no machine with
// direct access was at hand: the compat mode is what was run.

#ifndef LIB_LOAD_CUFILE_LOAD_H_
#define LIB_LOAD_CUFILE_LOAD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/load/plan.h"
#include "lib/load/sources.h"

namespace firstframe {

struct CufileReport {
  bool is_direct = false;
  std::string why_compat;  // empty when direct
  int64_t setup_ns = 0;    // library, driver, file handles
  int64_t read_ns = 0;
};

// Fills the device arena with `threads` threads. Unavailable when there is no
// libcufile, or it works in neither mode. Opens and closes the cuFile driver:
// one call at a time in a process.
absl::StatusOr<CufileReport> LoadWithCufile(const LoadPlan& plan,
                                            const OpenedSources& sources,
                                            std::byte* arena,
                                            cuda::Runtime& runtime, int device,
                                            int threads,
                                            const cuda::LibrarySearch& search);

}  // namespace firstframe

#endif  // LIB_LOAD_CUFILE_LOAD_H_
