// Writes events of this process (lib/observe/event_format.h).
//
// Everything under shim/ runs inside programs of other people, preloaded: it
// uses the C library alone (no libstdc++, which could clash with the
// program's), throws nothing, keeps errno, and does nothing at all when the
// variable is not set.

#ifndef LIB_OBSERVE_SHIM_RECORD_H_
#define LIB_OBSERVE_SHIM_RECORD_H_

#include <stddef.h>
#include <stdint.h>

#include "lib/observe/event_format.h"

namespace firstframe::shim {

int64_t NowNs();

// Null when this process is not observed.
EventHeader* Header();

struct Event {
  EventKind kind;
  const char* name;
  int64_t start_ns;
  int64_t end_ns;
  uint64_t value = 0;
  uint32_t slot = 0;
};

// Thread-safe, async-signal-safe. Names longer than 1000 bytes lose their
// front.
void Record(const Event& event);

// Returns the next definition of `name` after this library, or null.
void* NextSymbol(const char* name);

// Logs the libraries that were mapped since the last call; returns how many.
uint64_t LogNewLibraries();

// Keeps errno as the program left it.
class KeepErrno {
 public:
  KeepErrno();
  ~KeepErrno();

 private:
  int saved_;
};

}  // namespace firstframe::shim

#endif  // LIB_OBSERVE_SHIM_RECORD_H_
