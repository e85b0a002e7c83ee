// CUPTI's functions, found at run time.

#ifndef LIB_PROFILER_CUPTI_API_H_
#define LIB_PROFILER_CUPTI_API_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/profiler/cupti_abi.h"

namespace firstframe {

// Pointers that are null are functions the loaded CUPTI lacks. Copyable; valid
// as long as the process lives.
struct CuptiApi {
  using BufferRequested = void (*)(uint8_t**, size_t*, size_t*);
  using BufferCompleted = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);
  using Callback = void (*)(void*, int, uint32_t, const void*);

  std::string path;
  uint32_t version = 0;  // cuptiGetVersion: 18 to 26 (CUDA 12), 130001 (13.0)

  cupti::Result (*get_version)(uint32_t*);
  cupti::Result (*get_result_string)(cupti::Result, const char**);
  cupti::Result (*register_callbacks)(BufferRequested, BufferCompleted);
  cupti::Result (*enable)(int32_t);
  cupti::Result (*disable)(int32_t);
  cupti::Result (*flush_all)(uint32_t);
  cupti::Result (*get_next_record)(uint8_t*, size_t, void**);
  cupti::Result (*get_dropped)(void*, uint32_t, size_t*);
  cupti::Result (*set_attribute)(int, size_t*, void*);
  cupti::Result (*get_callback_name)(int, uint32_t, const char**);
  cupti::Result (*subscribe)(void**, Callback, void*);
  cupti::Result (*unsubscribe)(void*);
  cupti::Result (*get_timestamp)(uint64_t*);
  // Optional.
  cupti::Result (*subscribe_v2)(void**, Callback, void*,
                                cupti::SubscriberParams*);
  cupti::Result (*set_thread_id_type)(int);
  cupti::Result (*enable_callback)(uint32_t, void*, int, uint32_t);
  cupti::Result (*push_external)(int, uint64_t);
  cupti::Result (*pop_external)(int, uint64_t*);

  // Opens the copy that the process has mapped already (PyTorch brings its
  // own), else the one that `search` finds. Unavailable with the package that
  // brings it, or when it is older than CUPTI 12.
  static absl::StatusOr<CuptiApi> Load(const cuda::LibrarySearch& search);

  // Returns the result's name, or its number.
  std::string Message(cupti::Result result) const;
};

}  // namespace firstframe

#endif  // LIB_PROFILER_CUPTI_API_H_
