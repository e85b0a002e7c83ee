// The store on a real device: what the fake cannot show.

#include <algorithm>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cuda/device.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/host/process.h"
#include "lib/load/tensor_hash.h"
#include "lib/offload/frozen_store.h"
#include "lib/offload/layerwise_store.h"
#include "lib/offload/module_hash.h"
#include "lib/offload/synthetic_module.h"
#include "lib/safetensors/writer.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

class FrozenStoreGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto count = runtime_.DeviceCount();
    if (!count.ok() || *count == 0) GTEST_SKIP() << "no device";
    ASSERT_THAT(runtime_.SetDevice(0), IsOk());
    auto module = MakeSyntheticModule(200 * kMiB + 6, 8 * kMiB);
    ASSERT_THAT(module, IsOk());
    module_ = *std::move(module);
    truth_ = *HashModule(*module_, &runtime_);
  }
  void ExpectIntact(const OffloadModule& module) {
    const auto hashes = HashModule(module, &runtime_);
    ASSERT_THAT(hashes, IsOk());
    EXPECT_TRUE(*hashes == truth_);
  }
  cuda::Runtime& runtime_ = cuda::GetRuntime();
  std::unique_ptr<OffloadModule> module_;
  std::vector<uint64_t> truth_;
};

TEST_F(FrozenStoreGpuTest, RoundTripsAreBitIdentical) {
  for (const bool pin : {true, false}) {
    FrozenStoreOptions options;
    options.pin.pin = pin;
    options.chunks = {8 * kMiB, 32 * kMiB};
    options.guard = true;
    ASSERT_OK_AND_ASSIGN(
        auto store, FrozenStore::Create(module_.get(), &runtime_, options));
    ASSERT_OK_AND_ASSIGN(const cuda::Stream compute, cuda::Stream::Create());
    for (int cycle = 0; cycle < 3; ++cycle) {
      ASSERT_THAT(store->Load(0, compute.handle()), IsOk());
      ASSERT_THAT(compute.Synchronize(), IsOk());
      ExpectIntact(*module_);
      ASSERT_THAT(store->Unload(compute.handle()), IsOk());
      ASSERT_THAT(store->Wait(), IsOk());
      ExpectIntact(*module_);
    }
    EXPECT_EQ(store->stats().d2h_bytes, 0u);
    EXPECT_EQ(store->tier()->pinned_bytes > 0, pin);
  }
}

TEST_F(FrozenStoreGpuTest, PiecesOfARegistrationAreCopiedApart) {
  FrozenStoreOptions options;
  options.pin.max_piece_bytes = 6 * kMiB;
  options.pin.budget_bytes = 100 * kMiB;  // and a pageable rest
  ASSERT_OK_AND_ASSIGN(auto store,
                       FrozenStore::Create(module_.get(), &runtime_, options));
  ASSERT_THAT(store->Load(0), IsOk());
  ASSERT_THAT(store->Wait(), IsOk());
  EXPECT_EQ(store->tier()->pinned_bytes, 100 * kMiB);
  ExpectIntact(*module_);
}

TEST_F(FrozenStoreGpuTest, TheGuardNamesTheTensorThatChanged) {
  ASSERT_OK_AND_ASSIGN(auto store, FrozenStore::Create(module_.get(), &runtime_,
                                                       {.guard = true}));
  ASSERT_THAT(store->Load(0), IsOk());
  const OffloadTensor& tensor = module_->tensors()[11];
  ASSERT_OK_AND_ASSIGN(const cuda::Stream stream, cuda::Stream::Create());
  ASSERT_THAT(store->Wait(), IsOk());
  ASSERT_THAT(stream.FillAsync(tensor.data + tensor.size_bytes - 1, 0x5A, 1),
              IsOk());
  ASSERT_THAT(stream.Synchronize(), IsOk());
  EXPECT_THAT(store->Unload(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(tensor.name)));
}

TEST_F(FrozenStoreGpuTest, ADeviceThatRunsOutHalfWayLeavesAllWhereItWas) {
  ASSERT_OK_AND_ASSIGN(auto store,
                       FrozenStore::Create(module_.get(), &runtime_,
                                           {.chunks = {16 * kMiB, 16 * kMiB}}));
  const cuda::MemoryInfo memory = *runtime_.GetMemoryInfo();
  std::vector<cuda::DeviceBuffer> ballast;
  for (int64_t left = memory.free_bytes - int64_t{100} * kMiB; left > 0;) {
    const int64_t size = std::min<int64_t>(left, int64_t{8} << 30);
    auto buffer = cuda::DeviceBuffer::Allocate(size);
    if (!buffer.ok()) break;
    ballast.push_back(*std::move(buffer));
    left -= size;
  }
  EXPECT_THAT(store->Load(0),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the module stays where it was")));
  ExpectIntact(*module_);
  EXPECT_EQ(module_->tensors()[0].device, kHostMemory);
  ballast.clear();
  EXPECT_THAT(store->Load(0), IsOk());
  ASSERT_THAT(store->Wait(), IsOk());
  ExpectIntact(*module_);
}

TEST_F(FrozenStoreGpuTest, DestroyedWithWorkInFlight) {
  {
    ASSERT_OK_AND_ASSIGN(auto store,
                         FrozenStore::Create(module_.get(), &runtime_));
    ASSERT_THAT(store->Load(0), IsOk());
  }
  EXPECT_EQ(module_->tensors()[0].device, 0);
  ExpectIntact(*module_);
}

// The device memory that was let go must last as long as the work that uses it,
// and not longer.
TEST_F(FrozenStoreGpuTest, DestroyedAfterUnloadWithWorkInFlight) {
  ASSERT_OK_AND_ASSIGN(const cuda::Stream compute, cuda::Stream::Create());
  ASSERT_OK_AND_ASSIGN(
      const cuda::DeviceBuffer scratch,
      cuda::DeviceBuffer::Allocate(module_->tensors()[0].size_bytes));
  ASSERT_THAT(runtime_.SynchronizeDevice(), IsOk());
  const int64_t free_before = runtime_.GetMemoryInfo()->free_bytes;
  const OffloadTensor& first = module_->tensors()[0];
  {
    ASSERT_OK_AND_ASSIGN(auto store,
                         FrozenStore::Create(module_.get(), &runtime_));
    ASSERT_THAT(store->Load(0, compute.handle()), IsOk());
    for (int i = 0; i < 2000; ++i) {
      ASSERT_THAT(
          compute.CopyAsync(scratch.data(), first.data, first.size_bytes),
          IsOk());
    }
    ASSERT_THAT(store->Unload(compute.handle()), IsOk());
    ASSERT_OK_AND_ASSIGN(const bool is_idle, compute.IsIdle());
    EXPECT_FALSE(is_idle) << "Unload waited for the work";
  }
  ASSERT_THAT(compute.Synchronize(), IsOk());
  ExpectIntact(*module_);
  std::vector<std::byte> copy(first.size_bytes);
  ASSERT_THAT(compute.CopyAsync(copy.data(), scratch.data(), copy.size()),
              IsOk());
  ASSERT_THAT(compute.Synchronize(), IsOk());
  EXPECT_EQ(HashTensor(copy), truth_[0]);
  ASSERT_THAT(runtime_.SynchronizeDevice(), IsOk());
  EXPECT_EQ(runtime_.GetMemoryInfo()->free_bytes, free_before);
}

TEST_F(FrozenStoreGpuTest, NoMemoryGrowsOverAThousandCycles) {
  auto small = MakeSyntheticModule(16 * kMiB, 2 * kMiB);
  ASSERT_THAT(small, IsOk());
  ASSERT_OK_AND_ASSIGN(auto store,
                       FrozenStore::Create(small->get(), &runtime_));
  int64_t resident = 0;
  int64_t free_bytes = 0;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    ASSERT_THAT(store->Load(0), IsOk());
    ASSERT_THAT(store->Unload(), IsOk());
    ASSERT_THAT(store->Wait(), IsOk());
    if (cycle == 10) {
      resident = ReadResidentBytes();
      free_bytes = runtime_.GetMemoryInfo()->free_bytes;
    }
  }
  // A leak of one page a cycle would be twice this.
  EXPECT_LT(ReadResidentBytes(), resident + int64_t{2} * kMiB);
  EXPECT_EQ(runtime_.GetMemoryInfo()->free_bytes, free_bytes);
}

TEST_F(FrozenStoreGpuTest, ThePageCacheIsTheHostCopy) {
  const testing::TempDir dir;
  const std::string path = dir.File("m.safetensors");
  std::vector<NamedTensor> tensors;
  for (const OffloadTensor& tensor : module_->tensors()) {
    tensors.push_back({tensor.name,
                       {tensor.dtype, tensor.shape,
                        absl::MakeConstSpan(tensor.data, tensor.size_bytes)}});
  }
  ASSERT_THAT(WriteSafetensors(path, tensors), IsOk());
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(path));
  auto mapped = MapToHost(checkpoint, PinOptions(), &runtime_);
  if (absl::IsUnavailable(mapped.status())) GTEST_SKIP() << mapped.status();
  ASSERT_THAT(mapped, IsOk());
  truth_ = *HashModule(*mapped->module, &runtime_);
  ASSERT_OK_AND_ASSIGN(
      auto store,
      FrozenStore::CreateWithTier(mapped->module.get(), std::move(mapped->tier),
                                  &runtime_, {.guard = true}));
  ASSERT_THAT(store->Load(0), IsOk());
  ASSERT_THAT(store->Wait(), IsOk());
  ExpectIntact(*mapped->module);
  ASSERT_THAT(store->Unload(), IsOk());
}

TEST_F(FrozenStoreGpuTest, BlocksPassThroughTheRing) {
  ASSERT_OK_AND_ASSIGN(
      auto store,
      LayerwiseStore::Create(module_.get(), std::nullopt, 0, &runtime_));
  ASSERT_OK_AND_ASSIGN(const cuda::Stream compute, cuda::Stream::Create());
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < store->blocks().size(); ++i) {
      ASSERT_THAT(store->Acquire(i, compute.handle()), IsOk());
      ASSERT_THAT(compute.Synchronize(), IsOk());
      ExpectIntact(*module_);  // this block on the device, the rest on the host
      ASSERT_THAT(store->Release(i, compute.handle()), IsOk());
    }
  }
  EXPECT_LT(store->stats().device_bytes, module_->size_bytes() / 3);
}

}  // namespace
}  // namespace firstframe
