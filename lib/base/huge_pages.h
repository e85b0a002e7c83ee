// Huge pages for memory that is about to be filled.

#ifndef LIB_BASE_HUGE_PAGES_H_
#define LIB_BASE_HUGE_PAGES_H_

#include <cstddef>

namespace firstframe {

// Asks the kernel to back the whole huge pages inside of [data, data + bytes)
// by such: one fault for 2 MiB instead of 512. Pages at either end that other
// data shares stay small, so memory in use does not grow where all of the range
// is written. A hint: errors, and kernels without huge pages, are passed over.
// Thread-safe.
void AdviseHugePages(const void* data, size_t bytes);

}  // namespace firstframe

#endif  // LIB_BASE_HUGE_PAGES_H_
