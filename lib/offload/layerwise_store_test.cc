#include "lib/offload/layerwise_store.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/offload/testing.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::Holds;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::MakeTensor;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

// Two tensors a block, and two that are in none.
std::unique_ptr<OffloadModule> MakeModule(int blocks) {
  std::vector<OffloadTensor> tensors;
  tensors.push_back(MakeTensor("embed.weight", 500, 100));
  for (int i = 0; i < blocks; ++i) {
    tensors.push_back(
        MakeTensor(absl::StrCat("blocks.", i, ".weight"), 1000, i));
    tensors.push_back(
        MakeTensor(absl::StrCat("buffer:blocks.", i, ".mean"), 10, i + 50));
  }
  tensors.push_back(MakeTensor("norm.weight", 300, 101));
  return std::make_unique<OffloadModule>(std::move(tensors));
}

TEST(FindBlocks, GroupsByTheFirstNumber) {
  const auto module = MakeModule(3);
  const auto blocks = FindBlocks(*module);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1].name, "blocks.1");
  EXPECT_THAT(blocks[1].tensors, ::testing::ElementsAre(3, 4));
}

class LayerwiseStoreTest : public ::testing::TestWithParam<int> {
 protected:
  FakeCuda cuda_;
};

INSTANTIATE_TEST_SUITE_P(Blocks, LayerwiseStoreTest,
                         ::testing::Values(1, 2, 3, 4, 7));

TEST_P(LayerwiseStoreTest, EveryBlockIsThereWhenItsTurnComes) {
  const int blocks = GetParam();
  auto module = MakeModule(blocks);
  ASSERT_OK_AND_ASSIGN(auto store, LayerwiseStore::Create(
                                       module.get(), std::nullopt, 0, &cuda_));
  EXPECT_EQ(module->tensors().front().device, 0) << "in no block: stays";
  EXPECT_TRUE(Holds(module->tensors().front(), 100));
  EXPECT_LE(store->stats().device_bytes, 2 * 1300 + 1100u);
  for (int pass = 0; pass < 3; ++pass) {
    for (int i = 0; i < blocks; ++i) {
      ASSERT_THAT(store->Acquire(i), IsOk());
      const OffloadTensor& weight = module->tensors()[1 + 2 * i];
      EXPECT_EQ(weight.device, 0);
      EXPECT_TRUE(Holds(weight, i));
      EXPECT_TRUE(Holds(module->tensors()[2 + 2 * i], i + 50));
      ASSERT_THAT(store->Release(i), IsOk());
      EXPECT_EQ(weight.device, kHostMemory);
      EXPECT_TRUE(Holds(weight, i));
    }
  }
  EXPECT_EQ(store->stats().prefetch_misses, 1u) << "the very first";
  EXPECT_EQ(store->stats().prefetch_hits, 3u * blocks - 1);
  const int64_t bytes = cuda_.live_bytes();
  EXPECT_EQ(bytes, static_cast<int64_t>(store->stats().device_bytes));
  store.reset();
  EXPECT_EQ(module->tensors().front().device, kHostMemory);
  EXPECT_TRUE(Holds(module->tensors().back(), 101));
  EXPECT_EQ(cuda_.live_bytes(), 0);
  EXPECT_EQ(cuda_.live_handles(), 0);
}

TEST(LayerwiseStore, TheRingHasTwoHalves) {
  FakeCuda cuda;
  auto module = MakeModule(4);
  ASSERT_OK_AND_ASSIGN(
      auto store, LayerwiseStore::Create(module.get(), std::nullopt, 0, &cuda));
  ASSERT_THAT(store->Acquire(0), IsOk());
  ASSERT_THAT(store->Acquire(1), IsOk());
  EXPECT_TRUE(Holds(module->tensors()[1], 0)) << "still there";
  EXPECT_THAT(store->Acquire(2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("both halves")));
  EXPECT_THAT(store->Release(2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("not acquired")));
  ASSERT_THAT(store->Release(0), IsOk());
  ASSERT_THAT(store->Acquire(2), IsOk());
  EXPECT_TRUE(Holds(module->tensors()[5], 2));
  EXPECT_THAT(store->Acquire(4), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("less than 4")));
}

TEST(LayerwiseStore, WithoutADeviceItIsTheIdentity) {
  auto module = MakeModule(3);
  const std::byte* const before = module->tensors()[1].data;
  ASSERT_OK_AND_ASSIGN(auto store, LayerwiseStore::Create(
                                       module.get(), std::nullopt, 0, nullptr));
  EXPECT_EQ(store->blocks().size(), 3u);
  EXPECT_THAT(store->Acquire(0), IsOk());
  EXPECT_THAT(store->Acquire(3), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("less than 3")));
  EXPECT_EQ(module->tensors()[1].data, before);
  EXPECT_THAT(store->Release(0), IsOk());
  EXPECT_THAT(store->Release(3), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("less than 3")));
  EXPECT_THAT(store->Wait(), IsOk());
  EXPECT_EQ(store->stats().h2d_bytes, 0u);
}

TEST(LayerwiseStore, RefusesWhatItCannotMove) {
  FakeCuda cuda;
  std::vector<OffloadTensor> tensors;
  tensors.push_back(MakeTensor("weight", 100, 1));
  OffloadModule flat(std::move(tensors));
  EXPECT_THAT(LayerwiseStore::Create(&flat, std::nullopt, 0, &cuda),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no tensor with a number")));
  tensors.clear();
  tensors.push_back(MakeTensor("b.0.weight", 100, 1));
  tensors.push_back(tensors[0]);
  tensors[1].name = "b.1.weight";
  OffloadModule tied(std::move(tensors));
  EXPECT_THAT(LayerwiseStore::Create(&tied, std::nullopt, 0, &cuda),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'b.0.weight' and 'b.1.weight' share")));
  cuda.memory_bytes = 1000;
  auto module = MakeModule(2);
  EXPECT_THAT(LayerwiseStore::Create(module.get(), std::nullopt, 0, &cuda),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  EXPECT_TRUE(Holds(module->tensors()[1], 0));
  EXPECT_EQ(cuda.live_bytes(), 0);
}

}  // namespace
}  // namespace firstframe
