#include "lib/tensor/npy.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/zip/zip_writer.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Npy(const std::string& header, const std::string& data,
                char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += static_cast<char>(header.size());
  file += '\0';
  if (version > 1) file += std::string(2, '\0');
  return file + header + data;
}

TEST(Npy, WritesWhatNumPyWrites) {
  const TempDir dir;
  const std::string path = dir.File("a.npy");
  const float values[] = {1.0f, 2.0f};
  std::string data(8, '\0');
  std::memcpy(data.data(), values, 8);
  ASSERT_THAT(
      WriteNpy(path, {DType::kF32,
                      {2, 1},
                      absl::MakeConstSpan(
                          reinterpret_cast<const std::byte*>(values), 8)}),
      IsOk());
  // numpy.save(path, numpy.array([[1], [2]], '<f4')), NumPy 2.4.
  std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  EXPECT_EQ(ReadFile(path), Npy(header, data));
}

TEST(Npy, RoundTripsEveryTypeThatNumPyHas) {
  const TempDir dir;
  const std::string path = dir.File("a.npy");
  int written = 0;
  for (const DTypeInfo& info : AllDTypes()) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 3}}) {
      ASSERT_OK_AND_ASSIGN(
          HostTensor tensor,
          HostTensor::Create(info.bits < 8 ? DType::kU8 : info.dtype, shape));
      for (std::byte& byte : tensor.mutable_bytes()) byte = std::byte{0x3C};
      TensorView view = tensor.view();
      view.dtype = info.dtype;
      const absl::Status status = WriteNpy(path, view);
      if (info.numpy_name.empty()) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("convert it to F32")));
        continue;
      }
      ASSERT_THAT(status, IsOk());
      ASSERT_OK_AND_ASSIGN(const HostTensor back, ReadNpy(path));
      EXPECT_EQ(back.dtype(), tensor.dtype());
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(back.bytes(), tensor.bytes());
      ++written;
    }
  }
  EXPECT_EQ(written, 13 * 4);
}

TEST(Npy, ReadsOtherVersionsAndOrders) {
  ASSERT_OK_AND_ASSIGN(
      const HostTensor tensor,
      ParseNpy("x", Npy("{'shape': (2, 3), \"fortran_order\": True,\n"
                        "'descr': '|u1'}  \n",
                        "abcdef", 2)));
  EXPECT_THAT(tensor.data<uint8_t>(),
              ElementsAre('a', 'c', 'e', 'b', 'd', 'f'));
  ASSERT_OK_AND_ASSIGN(
      const HostTensor native,
      ParseNpy("x", Npy("{'descr': '=i2', 'fortran_order': False, "
                        "'shape': (1L,)}",
                        std::string("\x02\x01", 2))));
  EXPECT_THAT(native.data<int16_t>(), ElementsAre(0x0102));
}

TEST(Npy, RefusesMalformedFiles) {
  const std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}";
  const std::string good = Npy(header, "ab");
  ASSERT_THAT(ParseNpy("x", good), IsOk());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THAT(ParseNpy("x", good.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("x: byte ")))
        << size;
  }
  EXPECT_FALSE(ParseNpy("x", good + "c").ok());
  for (const char* bad :
       {"{}", "{'descr': '|u1', 'fortran_order': False}",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': "
        "(9223372036854775807, 3,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'x': 1}"}) {
    EXPECT_THAT(ParseNpy("x", Npy(bad, "ab")),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("x: byte ")))
        << bad;
  }
  EXPECT_THAT(
      ParseNpy("x", Npy("{'descr': '>f4', 'fortran_order': False, 'shape': ()}",
                        "abcd")),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'>f4'")));
}

TEST(Npz, ReadsItsArraysByName) {
  const TempDir dir;
  const std::string path = dir.File("a.npz");
  auto writer = ZipWriter::Create(path);
  const std::string header =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}";
  ASSERT_THAT(writer->Add("first.npy", Npy(header, "ab")), IsOk());
  ASSERT_THAT(writer->Add("second.npy", Npy(header, "cd")), IsOk());
  ASSERT_THAT(writer->Finish(), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto arrays, ReadNpz(path));
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[1].first, "second");
  EXPECT_THAT(arrays[1].second.data<uint8_t>(), ElementsAre('c', 'd'));
  EXPECT_THAT(ReadNpz(dir.Write("b.npz", "not a zip")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("b.npz")));
}

}  // namespace
}  // namespace firstframe
