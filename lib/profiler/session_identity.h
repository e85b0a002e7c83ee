// Who a session records. Private to lib/profiler.

#ifndef LIB_PROFILER_SESSION_IDENTITY_H_
#define LIB_PROFILER_SESSION_IDENTITY_H_

#include <string>

namespace firstframe {

// The host's name, "localhost" when it has none.
std::string HostName();

// The name of this process's program, as the kernel keeps it.
std::string ProcessName();

}  // namespace firstframe

#endif  // LIB_PROFILER_SESSION_IDENTITY_H_
