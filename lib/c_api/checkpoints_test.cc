// Checkpoints in host memory, and offload without a device.

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/c_api/dlpack_abi.h"
#include "lib/c_api/firstframe.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

std::string WriteCheckpoint(const testing::TempDir& dir) {
  std::string header =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,4],\"data_offsets\":[8,12]}}";
  while (header.size() % 8 != 0) header += ' ';
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += header;
  const float values[] = {1.5f, -2};
  file.append(reinterpret_cast<const char*>(values), sizeof(values));
  file += "wxyz";
  return dir.Write("model.safetensors", file);
}

TEST(Load, TensorsOutliveTheirCheckpoint) {
  const testing::TempDir dir;
  ff_checkpoint* checkpoint = nullptr;
  ASSERT_EQ(ff_load(WriteCheckpoint(dir).c_str(), FF_HOST, &checkpoint), FF_OK)
      << ff_last_error();
  ASSERT_EQ(ff_checkpoint_size(checkpoint), 2u);
  ff_tensor_info info = {.struct_size = sizeof(info)};
  ASSERT_EQ(ff_checkpoint_tensor(checkpoint, 1, &info), FF_OK);
  EXPECT_EQ(std::string(info.name), "b");
  EXPECT_EQ(info.dtype, FF_F8_E4M3);
  EXPECT_EQ(info.shape[1], 4);
  EXPECT_EQ(ff_checkpoint_tensor(checkpoint, 2, &info), FF_OUT_OF_RANGE);

  DLManagedTensor* a = nullptr;
  DLManagedTensor* b = nullptr;
  ASSERT_EQ(ff_checkpoint_dlpack(checkpoint, 0, &a), FF_OK);
  ASSERT_EQ(ff_checkpoint_dlpack(checkpoint, 1, &b), FF_OK);
  ff_checkpoint_release(checkpoint);
  EXPECT_EQ(a->dl_tensor.dtype.code, 2);
  EXPECT_EQ(a->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(static_cast<const float*>(a->dl_tensor.data)[1], -2);
  ff_dlpack_delete(a);
  // A type without a DLPack code comes as bytes.
  EXPECT_EQ(b->dl_tensor.dtype.code, 1);
  EXPECT_EQ(b->dl_tensor.ndim, 1);
  EXPECT_EQ(b->dl_tensor.shape[0], 4);
  EXPECT_EQ(static_cast<const char*>(b->dl_tensor.data)[3], 'z');
  b->deleter(b);
}

TEST(Load, FillsTheCallersMemory) {
  const testing::TempDir dir;
  const std::string path = WriteCheckpoint(dir);
  uint64_t size = 0;
  ASSERT_EQ(ff_load_size(path.c_str(), &size), FF_OK);
  void* const arena = std::aligned_alloc(256, size);
  ff_checkpoint* checkpoint = nullptr;
  EXPECT_EQ(ff_load_into(path.c_str(), FF_HOST, arena, size - 1, &checkpoint),
            FF_INVALID_ARGUMENT);
  ASSERT_EQ(ff_load_into(path.c_str(), FF_HOST, arena, size, &checkpoint),
            FF_OK)
      << ff_last_error();
  EXPECT_EQ(*static_cast<const float*>(arena), 1.5f);
  ff_checkpoint_release(checkpoint);
  std::free(arena);
}

TEST(Load, SaysWhatIsWrongWithAFile) {
  const testing::TempDir dir;
  ff_checkpoint* checkpoint = nullptr;
  EXPECT_EQ(ff_load("/nowhere/x.safetensors", FF_HOST, &checkpoint),
            FF_NOT_FOUND);
  EXPECT_THAT(ff_last_error(), HasSubstr("/nowhere/x.safetensors"));
  EXPECT_EQ(ff_load(dir.Write("x.safetensors", "12345678{").c_str(), FF_HOST,
                    &checkpoint),
            FF_DATA_LOSS);
  EXPECT_EQ(checkpoint, nullptr);
}

TEST(Offload, DoesNothingWithoutADevice) {
  int32_t devices = 0;
  ASSERT_EQ(ff_device_count(&devices), FF_OK);
  if (devices > 0) GTEST_SKIP() << "there is a device";
  float values[] = {1, 2};
  const int64_t shape[] = {2};
  ff_tensor_info tensor = {.struct_size = sizeof(tensor),
                           .name = "weight",
                           .shape = shape,
                           .data = values,
                           .dtype = FF_F32,
                           .ndim = 1,
                           .size_bytes = 8,
                           .device = FF_HOST};
  ff_offload* offload = nullptr;
  ASSERT_EQ(ff_offload_create(&tensor, 1, &offload), FF_OK) << ff_last_error();
  EXPECT_EQ(ff_offload_load(offload, 0, nullptr), FF_OK) << ff_last_error();
  EXPECT_EQ(ff_offload_unload(offload, nullptr), FF_OK);
  void* data = nullptr;
  int32_t device = 0;
  ASSERT_EQ(ff_offload_place(offload, 0, &data, &device), FF_OK);
  EXPECT_EQ(data, values);
  EXPECT_EQ(device, FF_HOST);
  EXPECT_EQ(ff_offload_place(offload, 1, &data, &device), FF_OUT_OF_RANGE);
  ff_offload_destroy(offload);

  tensor.size_bytes = 9;
  EXPECT_EQ(ff_offload_create(&tensor, 1, &offload), FF_INVALID_ARGUMENT);
  EXPECT_THAT(ff_last_error(), HasSubstr("size_bytes is 9"));
}

}  // namespace
}  // namespace firstframe
