// Arithmetic on sizes and offsets that come from files: every overflow is an
// empty optional, never a wrapped value.

#ifndef LIB_BASE_CHECKED_MATH_H_
#define LIB_BASE_CHECKED_MATH_H_

#include <concepts>
#include <optional>

namespace firstframe {

// Returns a + b, or nothing when the sum does not fit T.
template <std::integral T>
constexpr std::optional<T> CheckedAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Returns a * b, or nothing when the product does not fit T.
template <std::integral T>
constexpr std::optional<T> CheckedMultiply(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Returns the smallest multiple of `alignment` (a power of two) that is >=
// value, or nothing when it does not fit T.
template <std::unsigned_integral T>
constexpr std::optional<T> CheckedAlignUp(T value, T alignment) {
  const std::optional<T> sum = CheckedAdd<T>(value, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

}  // namespace firstframe

#endif  // LIB_BASE_CHECKED_MATH_H_
