#include "lib/torch_file/torch_file.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/tensor/host_tensor.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/torch_file/pickle_writer.h"
#include "lib/zip/zip_reader.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

// Runs `script` with Python's standard library alone, "FILE" being `path`.
// Returns whether it exits with 0; true as well where there is no python3.
bool PythonAgrees(const std::string& path, const std::string& script) {
  const TempDir dir;
  const std::string file =
      dir.Write("check.py", absl::StrCat("import sys, zipfile, pickletools\n"
                                         "path = sys.argv[1]\n",
                                         script));
  if (std::system("command -v python3 > /dev/null") != 0) return true;
  return std::system(absl::StrCat("python3 ", file, " ", path).c_str()) == 0;
}

HostTensor Ramp(DType dtype, Shape shape) {
  auto tensor = HostTensor::Create(dtype, std::move(shape));
  EXPECT_THAT(tensor, IsOk());
  int next = 1;
  for (std::byte& byte : tensor->mutable_bytes()) byte = std::byte(next++);
  return *std::move(tensor);
}

TEST(TorchFile, IsAZipOfAPickleAndItsStorages) {
  const TempDir dir;
  const std::string path = dir.File("a.pt");
  const HostTensor a = Ramp(DType::kF32, {2, 3});
  const HostTensor b = Ramp(DType::kF8E4M3, {5});
  ASSERT_THAT(WriteTorchDict(path, {{{"a", a.view()}, {"b", b.view()}}}),
              IsOk());
  ASSERT_OK_AND_ASSIGN(const ZipReader zip, ZipReader::Open(path));
  ASSERT_EQ(zip.members().size(), 5u);
  EXPECT_EQ(zip.members()[0].name, "archive/data.pkl");
  EXPECT_EQ(zip.members()[2].name, "archive/data/0");
  EXPECT_TRUE(PythonAgrees(path, R"(
with zipfile.ZipFile(path) as z:
    assert z.testzip() is None
    names = z.namelist()
    assert names == ['archive/data.pkl', 'archive/byteorder', 'archive/data/0',
                     'archive/data/1', 'archive/version'], names
    assert z.read('archive/data/0') == bytes(range(1, 25))
    assert z.read('archive/data/1') == bytes(range(1, 6))
    assert z.read('archive/version') == b'3\n'
    raw = open(path, 'rb').read()
    for name in names:
        info = z.getinfo(name)
        assert info.compress_type == zipfile.ZIP_STORED
        at = info.header_offset
        data = at + 30 + int.from_bytes(raw[at + 26:at + 28], 'little') \
            + int.from_bytes(raw[at + 28:at + 30], 'little')
        if '/data/' in name:
            assert data % 64 == 0, (name, data)
    pickle = z.read('archive/data.pkl')
    ops = [(op.name, arg) for op, arg, _ in pickletools.genops(pickle)]
    pickletools.dis(pickle, out=open('/dev/null', 'w'))
    globals_ = {arg for name, arg in ops if name == 'GLOBAL'}
    assert globals_ == {'torch._utils _rebuild_tensor_v2', 'torch FloatStorage',
        'torch._utils _rebuild_tensor_v3', 'torch.storage UntypedStorage',
        'torch float8_e4m3fn', 'collections OrderedDict'}, globals_
    assert max(op.proto for op, _, _ in pickletools.genops(pickle)) <= 2
)"));
}

TEST(TorchFile, OneTensorAlone) {
  const TempDir dir;
  const std::string path = dir.File("a.pt");
  ASSERT_THAT(WriteTorchTensor(path, Ramp(DType::kBF16, {2, 0, 3}).view()),
              IsOk());
  EXPECT_TRUE(PythonAgrees(path, R"(
with zipfile.ZipFile(path) as z:
    ops = [op.name for op, _, _ in
           pickletools.genops(z.read('archive/data.pkl'))]
    assert ops[1] == 'GLOBAL' and ops[-2:] == ['REDUCE', 'STOP'], ops
)"));
}

TEST(TorchFile, RefusesWhatPyTorchLacks) {
  const TempDir dir;
  const HostTensor f6 = Ramp(DType::kF6E2M3, {4});
  EXPECT_THAT(
      WriteTorchTensor(dir.File("a.pt"), f6.view()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("F6_E2M3")));
  const HostTensor f4 = Ramp(DType::kF4, {2, 3});
  EXPECT_THAT(WriteTorchTensor(dir.File("a.pt"), f4.view()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("even last dimension")));
  const HostTensor a = Ramp(DType::kF32, {1});
  EXPECT_THAT(
      WriteTorchDict(dir.File("a.pt"), {{{"a", a.view()}, {"a", a.view()}}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
}

TEST(PickleWriter, IntegersTakeTheirShortestForm) {
  PickleWriter pickle;
  for (const int64_t value : {int64_t{0}, int64_t{255}, int64_t{256},
                              int64_t{-1}, int64_t{1} << 31, INT64_MIN}) {
    pickle.Int(value);
  }
  const std::string text = std::move(pickle).Finish();
  EXPECT_EQ(text, std::string("\x80\x02K\0K\xFFJ\0\x01\0\0J\xFF\xFF\xFF\xFF"
                              "\x8a\x08\0\0\0\x80\0\0\0\0"
                              "\x8a\x08\0\0\0\0\0\0\0\x80.",
                              36 + 1));
}

}  // namespace
}  // namespace firstframe
