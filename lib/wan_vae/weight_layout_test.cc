#include "lib/wan_vae/weight_layout.h"

#include <vector>

#include "gtest/gtest.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

std::vector<float> Plain(const WeightShape& shape) {
  std::vector<float> values(shape.out * shape.in * shape.taps);
  FillSynthetic("w", {static_cast<int64_t>(values.size())}, 0,
                absl::MakeSpan(values));
  return values;
}

std::vector<float> Packed(const WeightShape& shape, int64_t block) {
  std::vector<float> packed(PackedWeightSize(shape, block), -9.0f);
  PackWeights(shape, Plain(shape).data(), shape.in * shape.taps, block,
              packed.data());
  return packed;
}

constexpr WeightShape kShapes[] = {
    {3, 5, 27}, {16, 16, 9}, {35, 21, 3}, {96, 48, 1}, {100, 40, 27}};

TEST(PackWeights, PutsEachWeightInItsPlace) {
  for (const WeightShape& shape : kShapes) {
    const std::vector<float> plain = Plain(shape);
    for (int64_t block : {16, 32, 48, 64}) {
      const std::vector<float> packed = Packed(shape, block);
      size_t i = 0;
      for (int64_t b = 0; b * block < shape.out; ++b) {
        for (int64_t tap = 0; tap < shape.taps; ++tap) {
          for (int64_t in = 0; in < shape.in; ++in) {
            for (int64_t o = b * block; o < (b + 1) * block; ++o, ++i) {
              const float expected =
                  o < shape.out ? plain[(o * shape.in + in) * shape.taps + tap]
                                : 0.0f;
              ASSERT_EQ(packed[i], expected) << o << " " << in << " " << tap;
            }
          }
        }
      }
      EXPECT_EQ(i, packed.size());
    }
  }
}

TEST(PackWeights, TakesSomeInputChannelsOfAWiderLayer) {
  const WeightShape wide = {20, 6, 9}, part = {20, 2, 9};
  const std::vector<float> plain = Plain(wide), whole = Packed(wide, 16);
  std::vector<float> packed(PackedWeightSize(part, 16));
  PackWeights(part, plain.data() + 3 * 9, 6 * 9, 16, packed.data());
  for (int64_t row = 0; row < 2 * 9; ++row) {  // block and tap
    for (int64_t i = 0; i < 2 * 16; ++i) {
      EXPECT_EQ(packed[row * 2 * 16 + i], whole[row * 6 * 16 + 3 * 16 + i]);
    }
  }
}

TEST(RepackWeights, EqualsPackingAfresh) {
  for (const WeightShape& shape : kShapes) {
    for (int64_t from : {16, 32, 48, 64}) {
      for (int64_t to : {16, 32, 48, 64}) {
        std::vector<float> repacked(PackedWeightSize(shape, to), -9.0f);
        RepackWeights(shape, Packed(shape, from).data(), from, repacked.data(),
                      to);
        EXPECT_EQ(repacked, Packed(shape, to)) << from << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace firstframe
