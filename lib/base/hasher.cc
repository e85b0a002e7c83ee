#include "lib/base/hasher.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "lib/base/check.h"

namespace firstframe {

class Hasher::State {
 public:
  virtual ~State() = default;
  virtual void Update(absl::Span<const std::byte> bytes) = 0;
  virtual std::string HexDigest() = 0;

  class Sha256;
  class Xxh3;
};

class Hasher::State::Sha256 : public Hasher::State {
 public:
  Sha256() : context_(::EVP_MD_CTX_new()) {
    FF_CHECK(context_ != nullptr &&
             ::EVP_DigestInit_ex(context_, ::EVP_sha256(), nullptr) == 1);
  }
  ~Sha256() override { ::EVP_MD_CTX_free(context_); }

  void Update(absl::Span<const std::byte> bytes) override {
    FF_CHECK(::EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1);
  }
  std::string HexDigest() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned int size = 0;
    FF_CHECK(::EVP_DigestFinal_ex(context_, digest.data(), &size) == 1);
    return absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
  }

 private:
  EVP_MD_CTX* const context_;
};

class Hasher::State::Xxh3 : public Hasher::State {
 public:
  Xxh3() : state_(::XXH3_createState()) {
    FF_CHECK(state_ != nullptr && ::XXH3_64bits_reset(state_) == XXH_OK);
  }
  ~Xxh3() override { ::XXH3_freeState(state_); }

  void Update(absl::Span<const std::byte> bytes) override {
    if (bytes.empty()) return;
    FF_CHECK(::XXH3_64bits_update(state_, bytes.data(), bytes.size()) ==
             XXH_OK);
  }
  std::string HexDigest() override {
    return absl::StrFormat("%016x", ::XXH3_64bits_digest(state_));
  }

 private:
  XXH3_state_t* const state_;
};

absl::string_view HashName(HashKind kind) {
  return kind == HashKind::kSha256 ? "sha256" : "xxh3";
}

std::optional<HashKind> ParseHashKind(absl::string_view name) {
  if (name == "sha256") return HashKind::kSha256;
  if (name == "xxh3") return HashKind::kXxh3;
  return std::nullopt;
}

Hasher::Hasher(HashKind kind) {
  if (kind == HashKind::kSha256) {
    state_ = std::make_unique<State::Sha256>();
  } else {
    state_ = std::make_unique<State::Xxh3>();
  }
}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::Update(absl::Span<const std::byte> bytes) {
  state_->Update(bytes);
}

std::string Hasher::HexDigest() { return state_->HexDigest(); }

std::string HashHex(HashKind kind, absl::Span<const std::byte> bytes) {
  Hasher hasher(kind);
  hasher.Update(bytes);
  return hasher.HexDigest();
}

}  // namespace firstframe
