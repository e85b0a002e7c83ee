#include "lib/activation/equal_line.h"

#include <immintrin.h>

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

// FindEqualLine with AVX2: a third of the instructions.
__attribute__((target("avx2,popcnt"))) EqualLine FindWide(const char* a,
                                                          const char* b,
                                                          size_t limit) {
  // The four odd characters differ in their low halves, which choose what a
  // byte is compared with; the other choices are no text.
  const __m256i odd_by_low_half = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(1, 0, 0, 0, 0, 0, 0, 0, 0, 'I', 0, '{', '\\', 0, 'N', 0));
  const __m256i space = _mm256_set1_epi8(' ');
  const __m256i colon = _mm256_set1_epi8(':');
  EqualLine line;
  if (limit == 0 || a[0] != b[0]) return line;
  uint32_t known = 1;  // the record's own '{'
  __m256i colons = _mm256_setzero_si256();
  for (size_t i = 0; i + 32 <= limit; i += 32) {
    _mm_prefetch(a + i + kPrefetchBytes, _MM_HINT_T0);
    _mm_prefetch(b + i + kPrefetchBytes, _MM_HINT_T0);
    const __m256i bytes =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i others =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i));
    // Signed: bytes from 0x80 on are below the space too.
    const __m256i odd_bytes = _mm256_or_si256(
        _mm256_cmpeq_epi8(_mm256_shuffle_epi8(odd_by_low_half, bytes), bytes),
        _mm256_cmpgt_epi8(space, bytes));
    const __m256i fine =
        _mm256_andnot_si256(odd_bytes, _mm256_cmpeq_epi8(bytes, others));
    const __m256i found = _mm256_cmpeq_epi8(bytes, colon);
    const uint32_t odd =
        ~static_cast<uint32_t>(_mm256_movemask_epi8(fine)) & ~known;
    known = 0;
    if (odd == 0) {  // a match is -1
      colons = _mm256_sub_epi8(colons, found);
      continue;
    }
    const size_t end = i + __builtin_ctz(odd);
    if (a[end] != '\n' || b[end] != '\n') return line;
    line.size = end;
    const __m256i sums = _mm256_sad_epu8(colons, _mm256_setzero_si256());
    const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sums),
                                       _mm256_extracti128_si256(sums, 1));
    line.colons =
        _mm_extract_epi16(half, 0) + _mm_extract_epi16(half, 4) +
        __builtin_popcount(static_cast<uint32_t>(_mm256_movemask_epi8(found)) &
                           ((odd & -odd) - 1));
    return line;
  }
  return line;
}

}  // namespace

EqualLine FindEqualLine(const char* a, const char* b, size_t limit) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  return has_avx2 ? FindWide(a, b, limit) : FindEqualLineSse2(a, b, limit);
}

EqualLine FindEqualLineSse2(const char* a, const char* b, size_t limit) {
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
