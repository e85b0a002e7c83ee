// Copies out of a file mapping that may have shrunk: where a plain memcpy would
// end the process with SIGBUS, this says how far it came.

#ifndef LIB_BASE_SIGBUS_GUARD_H_
#define LIB_BASE_SIGBUS_GUARD_H_

#include <cstddef>

namespace firstframe {

// Copies `size` bytes and returns true, or returns false when a page of
// `source` could not be read (the file was cut, or its device failed); the
// contents of `target` are then unspecified.
//
// The first call installs a SIGBUS handler for the process. It acts on faults
// inside this function alone and hands every other one to the handler that was
// there before. A handler installed later must do likewise. Thread-safe.
bool CopyFromMapping(void* target, const void* source, size_t size);

}  // namespace firstframe

#endif  // LIB_BASE_SIGBUS_GUARD_H_
