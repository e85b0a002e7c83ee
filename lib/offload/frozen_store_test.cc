#include "lib/offload/frozen_store.h"

#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/offload/testing.h"
#include "lib/safetensors/writer.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::Holds;
using ::firstframe::testing::HostDeviceHash;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::MakeTensor;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

std::unique_ptr<OffloadModule> MakeModule() {
  std::vector<OffloadTensor> tensors;
  tensors.push_back(MakeTensor("a.weight", 1000, 1));
  tensors.push_back(MakeTensor("b.weight", 3000, 2));
  tensors.push_back(tensors[0]);  // tied
  tensors.back().name = "head.weight";
  tensors.push_back(MakeTensor("buffer:empty", 0, 3));
  return std::make_unique<OffloadModule>(std::move(tensors));
}

bool IsIntact(const OffloadModule& module) {
  return Holds(module.tensors()[0], 1) && Holds(module.tensors()[1], 2) &&
         Holds(module.tensors()[2], 1);
}

bool IsOn(const OffloadModule& module, int device) {
  for (const OffloadTensor& tensor : module.tensors()) {
    if (tensor.size_bytes > 0 && tensor.device != device) return false;
  }
  return true;
}

class FrozenStoreTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<FrozenStore> MakeStore(FrozenStoreOptions options = {}) {
    options.pin.pin = GetParam();
    auto store = FrozenStore::Create(module_.get(), &cuda_, options);
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }
  FakeCuda cuda_;
  std::unique_ptr<OffloadModule> module_ = MakeModule();
};

INSTANTIATE_TEST_SUITE_P(Pin, FrozenStoreTest, ::testing::Bool());

TEST_P(FrozenStoreTest, RoundTripsAreBitIdenticalAndCopyNothingBack) {
  auto store = MakeStore();
  for (int cycle = 0; cycle < 3; ++cycle) {
    ASSERT_THAT(store->Load(0), IsOk());
    EXPECT_TRUE(IsOn(*module_, 0));
    EXPECT_TRUE(IsIntact(*module_));
    EXPECT_EQ(module_->tensors()[0].data, module_->tensors()[2].data) << "tied";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(module_->tensors()[1].data) % 256,
              0u);
    ASSERT_THAT(store->Unload(), IsOk());
    EXPECT_TRUE(IsOn(*module_, kHostMemory));
    EXPECT_TRUE(IsIntact(*module_));
    EXPECT_EQ(module_->tensors()[0].data, module_->tensors()[2].data) << "tied";
    EXPECT_EQ(cuda_.live_bytes(), 0);
  }
  EXPECT_EQ(store->stats().h2d_bytes, 3 * 4000u) << "tied weights count once";
  EXPECT_EQ(store->stats().d2h_bytes, 0u);
  EXPECT_EQ(store->stats().d2h_avoided_bytes, 3 * 4000u);
  EXPECT_EQ(store->tier()->pinned_bytes > 0, GetParam());
}

TEST_P(FrozenStoreTest, NothingAbsentMeansNoHostCopy) {
  // A module that was built on the device.
  for (OffloadTensor& tensor : module_->mutable_tensors()) tensor.device = 0;
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  EXPECT_EQ(store->tier(), nullptr);
  EXPECT_EQ(store->stats().loads, 0u);
  EXPECT_EQ(cuda_.calls("RegisterHost") + cuda_.calls("CopyBatchAsync"), 0);
}

TEST_P(FrozenStoreTest, OnlyAbsentTensorsAreCopiedIn) {
  module_->mutable_tensors()[1].device = 0;
  const std::byte* const resident = module_->tensors()[1].data;
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  EXPECT_EQ(store->stats().h2d_bytes, 1000u);
  EXPECT_EQ(store->stats().d2h_bytes, 3000u) << "its one host copy";
  EXPECT_EQ(module_->tensors()[1].data, resident);
  EXPECT_TRUE(IsOn(*module_, 0));
  ASSERT_THAT(store->Unload(), IsOk());
  EXPECT_TRUE(IsOn(*module_, kHostMemory));
  ASSERT_THAT(store->Load(0), IsOk());
  EXPECT_EQ(store->stats().h2d_bytes, 5000u);
  EXPECT_TRUE(IsIntact(*module_));
}

TEST_P(FrozenStoreTest, UnloadWithoutLoadMakesTheHostCopyOnce) {
  for (OffloadTensor& tensor : module_->mutable_tensors()) tensor.device = 0;
  auto store = MakeStore();
  ASSERT_THAT(store->Unload(), IsOk());
  EXPECT_EQ(store->stats().d2h_bytes, 4000u);
  EXPECT_TRUE(IsOn(*module_, kHostMemory));
  EXPECT_TRUE(IsIntact(*module_));
  ASSERT_THAT(store->Load(0), IsOk());
  ASSERT_THAT(store->Unload(), IsOk());
  EXPECT_EQ(store->stats().d2h_bytes, 4000u);
}

TEST_P(FrozenStoreTest, DeviceMemoryGoesAfterTheWorkThatUsesIt) {
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  const int64_t held = cuda_.live_bytes();
  cuda_.Hold();
  ASSERT_THAT(store->Unload(), IsOk());
  EXPECT_EQ(cuda_.live_bytes(), held) << "freed before its work is done";
  EXPECT_TRUE(IsOn(*module_, kHostMemory)) << "and without waiting";
  cuda_.Release();
  EXPECT_EQ(cuda_.live_bytes(), 0);
}

TEST_P(FrozenStoreTest, NoMemoryGrowsOverAThousandCycles) {
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  const int64_t bytes = cuda_.live_bytes();
  const int handles = cuda_.live_handles();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_THAT(store->Unload(), IsOk());
    ASSERT_THAT(store->Load(0), IsOk());
  }
  EXPECT_EQ(cuda_.live_bytes(), bytes);
  EXPECT_EQ(cuda_.live_handles(), handles);
  EXPECT_EQ(cuda_.calls("RegisterHost"), GetParam() ? 1 : 0);
  EXPECT_TRUE(IsIntact(*module_));
}

TEST_P(FrozenStoreTest, ADeviceThatRunsOutHalfWayLeavesAllWhereItWas) {
  auto store = MakeStore({.chunks = {1024, 1024}});
  cuda_.memory_bytes = 2000;  // the first chunk of two
  const std::byte* const before = module_->tensors()[0].data;
  EXPECT_THAT(store->Load(0),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the module stays where it was: device 0 "
                                 "after 1000 bytes")));
  EXPECT_TRUE(IsOn(*module_, kHostMemory));
  EXPECT_EQ(module_->tensors()[0].data, before);
  EXPECT_EQ(cuda_.live_bytes(), 0);
  cuda_.memory_bytes = 1 << 20;
  ASSERT_THAT(store->Load(0), IsOk());
  EXPECT_TRUE(IsIntact(*module_));
}

TEST_P(FrozenStoreTest, ACopyThatFailsLeavesAllWhereItWas) {
  auto store = MakeStore();
  cuda_.FailNext("CopyBatchAsync", absl::InternalError("lost"));
  EXPECT_THAT(store->Load(0),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("lost")));
  EXPECT_TRUE(IsOn(*module_, kHostMemory));
  EXPECT_EQ(cuda_.live_bytes(), 0);
  EXPECT_THAT(store->Load(0), IsOk());
}

TEST_P(FrozenStoreTest, TheGuardNamesTheTensorThatChanged) {
  auto store = MakeStore({.guard = true, .device_hash = HostDeviceHash()});
  ASSERT_THAT(store->Load(0), IsOk());
  ASSERT_THAT(store->Unload(), IsOk());
  ASSERT_THAT(store->Load(0), IsOk());
  module_->tensors()[1].data[2999] ^= std::byte{1};
  EXPECT_THAT(store->Unload(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("tensor \"b.weight\": found other bytes")));
  EXPECT_TRUE(IsOn(*module_, 0)) << "the changed tensor is not thrown away";
  module_->tensors()[1].data[2999] ^= std::byte{1};
  EXPECT_THAT(store->Unload(), IsOk());
}

TEST_P(FrozenStoreTest, DestroyedWithWorkInFlight) {
  auto store = MakeStore();
  cuda_.Hold();
  ASSERT_THAT(store->Load(0), IsOk());
  store.reset();
  EXPECT_TRUE(IsOn(*module_, 0));
  EXPECT_TRUE(IsIntact(*module_)) << "the copies were waited for";
  EXPECT_GT(cuda_.live_bytes(), 0);
  module_.reset();
  EXPECT_EQ(cuda_.live_bytes(), 0);
  EXPECT_EQ(cuda_.live_handles(), 0);
}

TEST_P(FrozenStoreTest, DestroyedAfterUnloadTheModuleKeepsItsHostCopy) {
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  ASSERT_THAT(store->Unload(), IsOk());
  store.reset();
  EXPECT_TRUE(IsIntact(*module_));
}

TEST_P(FrozenStoreTest, TwoStoresCannotShareAModule) {
  auto store = MakeStore();
  EXPECT_THAT(FrozenStore::Create(module_.get(), &cuda_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("belongs to another store")));
  store.reset();
  EXPECT_THAT(FrozenStore::Create(module_.get(), &cuda_), IsOk());
}

TEST_P(FrozenStoreTest, ATensorPointedElsewhereIsRefused) {
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  OffloadTensor mine = MakeTensor("b.weight", 3000, 9);
  mine.device = 0;
  module_->mutable_tensors()[1] = mine;
  EXPECT_THAT(store->Unload(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("tensor \"b.weight\": found it pointed at")));
}

TEST_P(FrozenStoreTest, AnotherDeviceNeedsAnUnload) {
  cuda_.device_count = 2;
  auto store = MakeStore();
  ASSERT_THAT(store->Load(0), IsOk());
  EXPECT_THAT(store->Load(1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("is on device 0")));
  ASSERT_THAT(store->Unload(), IsOk());
  ASSERT_THAT(store->Load(1), IsOk());
  EXPECT_TRUE(IsOn(*module_, 1));
  EXPECT_TRUE(IsIntact(*module_));
  EXPECT_EQ(*cuda_.CurrentDevice(), 0) << "the caller's device stays current";
}

TEST(FrozenStore, WithoutADeviceItIsTheIdentity) {
  auto module = MakeModule();
  ASSERT_OK_AND_ASSIGN(auto store, FrozenStore::Create(module.get(), nullptr));
  const std::byte* const before = module->tensors()[0].data;
  EXPECT_THAT(store->Load(0), IsOk());
  EXPECT_THAT(store->Unload(), IsOk());
  EXPECT_EQ(module->tensors()[0].data, before);
  EXPECT_EQ(store->tier(), nullptr);
}

TEST(FrozenStore, APinThatIsRefusedFallsBackAndSaysSo) {
  FakeCuda cuda;
  auto module = MakeModule();
  ASSERT_OK_AND_ASSIGN(auto store, FrozenStore::Create(module.get(), &cuda));
  cuda.FailNext("RegisterHost", absl::ResourceExhaustedError("memlock"));
  ASSERT_THAT(store->Load(0), IsOk());
  EXPECT_TRUE(IsIntact(*module));
  EXPECT_EQ(store->tier()->pinned_bytes, 0u);
  EXPECT_GE(store->tier()->pageable_bytes, 4000u);
  ASSERT_EQ(store->tier()->degraded.size(), 1u);
  EXPECT_THAT(store->tier()->degraded[0], HasSubstr("memlock"));
}

TEST(FrozenStore, APinBudgetPinsAPartInPieces) {
  FakeCuda cuda;
  constexpr uint64_t kMiB = 1 << 20;
  std::vector<OffloadTensor> tensors;
  for (int i = 0; i < 5; ++i) {
    tensors.push_back(
        MakeTensor(std::string(1, 'a' + i), 2 * kMiB - 300, i + 1));
  }
  OffloadModule module(std::move(tensors));
  FrozenStoreOptions options;
  options.pin.budget_bytes = 7 * kMiB;
  options.pin.max_piece_bytes = 2 * kMiB;
  ASSERT_OK_AND_ASSIGN(auto store,
                       FrozenStore::Create(&module, &cuda, options));
  ASSERT_THAT(store->Load(0), IsOk());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Holds(module.tensors()[i], i + 1));
  EXPECT_EQ(store->tier()->pinned_bytes, 6 * kMiB);
  EXPECT_EQ(cuda.calls("RegisterHost"), 3);
  EXPECT_EQ(store->tier()->cuts.size(), 3u);
  EXPECT_EQ(store->stats().copies, 4u) << "one run, cut where pieces end";
  EXPECT_THAT(store->tier()->degraded[0],
              HasSubstr("the budget is 7340032 (as asked)"));
}

class FileTierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = dir_.File("m.safetensors");
    for (int i = 0; i < 3; ++i) {
      values_.push_back(MakeTensor(std::string(1, 'a' + i), 100 + i * 1000, i));
    }
    std::vector<NamedTensor> tensors;
    for (const OffloadTensor& tensor : values_) {
      tensors.push_back(
          {tensor.name,
           {tensor.dtype, tensor.shape,
            absl::MakeConstSpan(tensor.data, tensor.size_bytes)}});
    }
    ASSERT_THAT(WriteSafetensors(path_, tensors), IsOk());
  }
  void ExpectIntact(const OffloadModule& module) {
    ASSERT_EQ(module.tensors().size(), 3u);
    for (const OffloadTensor& tensor : module.tensors()) {
      EXPECT_TRUE(Holds(tensor, tensor.name[0] - 'a')) << tensor.name;
    }
  }
  TempDir dir_;
  std::string path_;
  std::vector<OffloadTensor> values_;
  FakeCuda cuda_;
};

TEST_F(FileTierTest, WeightsAreReadStraightIntoTheArena) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path_));
  ASSERT_OK_AND_ASSIGN(HostModule read,
                       ReadToHost(checkpoint, PinOptions(), &cuda_));
  ExpectIntact(*read.module);
  EXPECT_GT(read.tier.pinned_bytes, 0u);
  const std::byte* const host = read.module->tensors()[0].data;
  ASSERT_OK_AND_ASSIGN(
      auto store, FrozenStore::CreateWithTier(read.module.get(),
                                              std::move(read.tier), &cuda_));
  ASSERT_THAT(store->Load(0), IsOk());
  ExpectIntact(*read.module);
  ASSERT_THAT(store->Unload(), IsOk());
  EXPECT_EQ(read.module->tensors()[0].data, host);
  EXPECT_EQ(cuda_.calls("RegisterHost"), 1);
}

TEST_F(FileTierTest, ThePageCacheIsTheHostCopy) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path_));
  ASSERT_OK_AND_ASSIGN(HostModule mapped,
                       MapToHost(checkpoint, PinOptions(), &cuda_));
  EXPECT_EQ(mapped.tier.pinned_bytes + mapped.tier.pageable_bytes, 0u);
  EXPECT_GT(mapped.tier.mapped_bytes, 0u);
  ASSERT_OK_AND_ASSIGN(auto store,
                       FrozenStore::CreateWithTier(
                           mapped.module.get(), std::move(mapped.tier), &cuda_,
                           {.guard = true, .device_hash = HostDeviceHash()}));
  for (int cycle = 0; cycle < 2; ++cycle) {
    ASSERT_THAT(store->Load(0), IsOk());
    ExpectIntact(*mapped.module);
    for (const OffloadTensor& tensor : mapped.module->tensors()) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % 256, 0u);
    }
    ASSERT_THAT(store->Unload(), IsOk());
  }
}

TEST_F(FileTierTest, WithoutADeviceAMappingIsTheIdentity) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path_));
  ASSERT_OK_AND_ASSIGN(HostModule mapped,
                       MapToHost(checkpoint, PinOptions(), nullptr));
  ASSERT_OK_AND_ASSIGN(
      auto store, FrozenStore::CreateWithTier(mapped.module.get(),
                                              std::move(mapped.tier), nullptr));
  ASSERT_THAT(store->Load(0), IsOk());
  ExpectIntact(*mapped.module);
  ASSERT_THAT(store->Unload(), IsOk());
  ExpectIntact(*mapped.module);
}

TEST_F(FileTierTest, AMappedFileThatChangesIsRefused) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path_));
  ASSERT_OK_AND_ASSIGN(HostModule mapped,
                       MapToHost(checkpoint, PinOptions(), &cuda_));
  ASSERT_OK_AND_ASSIGN(
      auto store, FrozenStore::CreateWithTier(mapped.module.get(),
                                              std::move(mapped.tier), &cuda_));
  ASSERT_EQ(::truncate(path_.c_str(), 200), 0);
  EXPECT_THAT(store->Load(0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("to 200 bytes")));
  EXPECT_THAT(MapToHost(checkpoint, PinOptions(), &cuda_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("changed since")));
}

TEST_F(FileTierTest, AMappingThatCannotBePinnedIsRefused) {
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path_));
  cuda_.FailNext("RegisterHost", absl::UnimplementedError("read-only"));
  EXPECT_THAT(MapToHost(checkpoint, PinOptions(), &cuda_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("read-only")));
}

}  // namespace
}  // namespace firstframe
