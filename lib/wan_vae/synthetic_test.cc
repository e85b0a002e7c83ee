#include "lib/wan_vae/synthetic.h"

#include <openssl/sha.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

std::string Sha256(const std::vector<float>& values) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(values.data()),
         values.size() * sizeof(float),
         reinterpret_cast<unsigned char*>(digest.data()));
  return absl::BytesToHexString(digest);
}

std::vector<float> Synthetic(const std::string& name, const Shape& shape) {
  std::vector<float> values(*CheckedNumElements(shape));
  FillSynthetic(name, shape, 0, absl::MakeSpan(values));
  return values;
}

class SyntheticWeights : public ::testing::TestWithParam<const char*> {};

TEST_P(SyntheticWeights, HaveTheGoldenBits) {
  const auto golden = testing::ReadGoldenParameters(GetParam());
  ASSERT_FALSE(golden.empty());
  for (const auto& parameter : golden) {
    EXPECT_EQ(Sha256(Synthetic(parameter.name, parameter.shape)),
              parameter.sha256)
        << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SyntheticWeights,
                         ::testing::Values("tiny", "small", "wan21"));

TEST(Synthetic, LatentIsTheGoldenOne) {
  for (const char* file :
       {"tiny_golden.safetensors", "small_golden.safetensors"}) {
    const auto golden = testing::ReadGoldenTensors(file);
    const FloatTensor& latent = golden.at("latent");
    EXPECT_EQ(Synthetic("latent", latent.shape), latent.values) << file;
  }
}

TEST(Synthetic, AnyRangeIsTheSameTensor) {
  const Shape shape = {7, 11};
  const std::vector<float> whole = Synthetic("a.weight", shape);
  for (int64_t first : {0, 1, 5, 16, 76}) {
    std::vector<float> part(whole.size() - first);
    FillSynthetic("a.weight", shape, first, absl::MakeSpan(part));
    EXPECT_EQ(part, std::vector<float>(whole.begin() + first, whole.end()));
  }
}

}  // namespace
}  // namespace firstframe
