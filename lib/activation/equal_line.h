// Finds a record that two traces have in common, at the speed of memory.

#ifndef LIB_ACTIVATION_EQUAL_LINE_H_
#define LIB_ACTIVATION_EQUAL_LINE_H_

#include <cstddef>

namespace firstframe {

// A line that two texts have in common.
struct EqualLine {
  size_t size = 0;  // without the line end; 0: there is none
  int colons = 0;   // may wrap past 4 KB, and is then as good as wrong
};

// Returns the line at the beginning of both texts, of which `limit` bytes may
// be read. None when they differ, or when the line needs a closer look: a '{'
// behind the first byte (glued records), escapes, control bytes, bytes from
// 0x80 on, or a capital N or I that may begin NaN or Infinity. The last 31
// bytes of a text always do. Thread-safe.
EqualLine FindEqualLine(const char* a, const char* b, size_t limit);

// The same for processors without AVX2.
EqualLine FindEqualLineSse2(const char* a, const char* b, size_t limit);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_EQUAL_LINE_H_
