#include "lib/base/hasher.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()),
                             text.size());
}

TEST(Hasher, KnownValues) {
  // FIPS 180-4, and xxhsum -H3 of xxHash 0.8.
  EXPECT_EQ(HashHex(HashKind::kSha256, {}),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashHex(HashKind::kSha256, Bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashHex(HashKind::kXxh3, {}), "2d06800538d394c2");
}

TEST(Hasher, PartsGiveTheSameAsTheWhole) {
  for (const HashKind kind : {HashKind::kSha256, HashKind::kXxh3}) {
    Hasher hasher(kind);
    hasher.Update(Bytes("ab"));
    hasher.Update({});
    hasher.Update(Bytes("c"));
    EXPECT_EQ(hasher.HexDigest(), HashHex(kind, Bytes("abc")));
  }
}

TEST(Hasher, Names) {
  EXPECT_EQ(ParseHashKind("sha256"), HashKind::kSha256);
  EXPECT_EQ(ParseHashKind("xxh3"), HashKind::kXxh3);
  EXPECT_EQ(ParseHashKind("md5"), std::nullopt);
  EXPECT_EQ(std::string(HashName(HashKind::kXxh3)), "xxh3");
}

}  // namespace
}  // namespace firstframe
