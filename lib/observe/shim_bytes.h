// libfirstframe_startup.so, carried inside this binary.

#ifndef LIB_OBSERVE_SHIM_BYTES_H_
#define LIB_OBSERVE_SHIM_BYTES_H_

#include "absl/strings/string_view.h"

namespace firstframe {

absl::string_view ShimBytes();

}  // namespace firstframe

#endif  // LIB_OBSERVE_SHIM_BYTES_H_
