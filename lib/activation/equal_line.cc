#include "lib/activation/equal_line.h"

#include <emmintrin.h>

#include <cstdint>

namespace firstframe {
namespace {

constexpr size_t kPrefetchBytes = 1024;

// Looks at 16 bytes of two texts.
class Glance {
 public:
  __attribute__((always_inline)) Glance(const char* a, const char* b)
      : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a))),
        others_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b))) {}

  // Which bytes differ or need a closer look: '{' (glued records), escapes,
  // control bytes and line ends, or a capital N or I that may begin NaN or
  // Infinity.
  __attribute__((always_inline)) uint32_t Odd() const {
    // Signed: bytes from 0x80 on count as control bytes too, and go slowly.
    const __m128i low = _mm_cmplt_epi8(bytes_, _mm_set1_epi8(' '));
    const __m128i odd =
        _mm_or_si128(_mm_or_si128(Equal('{'), Equal('\\')),
                     _mm_or_si128(_mm_or_si128(Equal('N'), Equal('I')), low));
    const __m128i fine = _mm_andnot_si128(odd, _mm_cmpeq_epi8(bytes_, others_));
    return static_cast<uint32_t>(_mm_movemask_epi8(fine)) ^ 0xFFFFu;
  }
  __attribute__((always_inline)) __m128i Equal(char c) const {
    return _mm_cmpeq_epi8(bytes_, _mm_set1_epi8(c));
  }

 private:
  __m128i bytes_, others_;
};

}  // namespace

EqualLine FindEqualLine(const char* a, const char* b, size_t limit) {
  EqualLine line;
  if (limit == 0 || a[0] != b[0]) return line;
  uint32_t known = 1;  // the record's own '{'
  __m128i colons = _mm_setzero_si128();
  for (size_t i = 0; i + 32 <= limit; i += 32) {
    // The hardware's own prefetch stops at the end of a page.
    _mm_prefetch(a + i + kPrefetchBytes, _MM_HINT_T0);
    _mm_prefetch(b + i + kPrefetchBytes, _MM_HINT_T0);
    const Glance first(a + i, b + i), second(a + i + 16, b + i + 16);
    const uint32_t odd = (first.Odd() | second.Odd() << 16) & ~known;
    known = 0;
    if (odd == 0) {  // a match is -1
      colons = _mm_sub_epi8(colons,
                            _mm_add_epi8(first.Equal(':'), second.Equal(':')));
      continue;
    }
    const size_t end = i + __builtin_ctz(odd);
    if (a[end] != '\n' || b[end] != '\n') return line;
    line.size = end;
    const __m128i sums = _mm_sad_epu8(colons, _mm_setzero_si128());
    line.colons = _mm_extract_epi16(sums, 0) + _mm_extract_epi16(sums, 4);
    const uint32_t last =
        static_cast<uint32_t>(_mm_movemask_epi8(first.Equal(':'))) |
        static_cast<uint32_t>(_mm_movemask_epi8(second.Equal(':'))) << 16;
    line.colons += __builtin_popcount(last & ((odd & -odd) - 1));
    return line;
  }
  return line;
}

}  // namespace firstframe
