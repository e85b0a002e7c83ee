// Hashes of byte streams: SHA-256, which names blobs of the Hugging Face cache,
// and XXH3 (64 bits), which keeps up with memory but proves nothing against
// intent.

#ifndef LIB_BASE_HASHER_H_
#define LIB_BASE_HASHER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace firstframe {

enum class HashKind { kSha256, kXxh3 };

// Returns "sha256" or "xxh3".
absl::string_view HashName(HashKind kind);
std::optional<HashKind> ParseHashKind(absl::string_view name);

// Movable, thread-compatible.
class Hasher {
 public:
  explicit Hasher(HashKind kind);
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void Update(absl::Span<const std::byte> bytes);

  // Returns the hash of all bytes so far in lower-case hexadecimal: 64 digits
  // for SHA-256, 16 for XXH3 (most significant first, as xxhsum prints it).
  // Call once, last.
  std::string HexDigest();

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Returns the digest of `bytes`.
std::string HashHex(HashKind kind, absl::Span<const std::byte> bytes);

}  // namespace firstframe

#endif  // LIB_BASE_HASHER_H_
