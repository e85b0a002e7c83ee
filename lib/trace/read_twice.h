// Traces that have to be read twice.

#ifndef LIB_TRACE_READ_TWICE_H_
#define LIB_TRACE_READ_TWICE_H_

#include <string>

#include "absl/status/status.h"

namespace firstframe {

// InvalidArgument for what gives its bytes once: standard input ("-"), a pipe,
// a socket, a terminal. Call it before the first reading, which would use them
// up; opening a pipe again would wait for ever. What is not there is OK here.
// Thread-safe.
absl::Status CheckReadableTwice(const std::string& path);

}  // namespace firstframe

#endif  // LIB_TRACE_READ_TWICE_H_
