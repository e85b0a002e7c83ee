#include "lib/torch_file/torch_file.h"

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/torch_file/pickle_writer.h"
#include "lib/zip/zip_writer.h"

namespace firstframe {
namespace {

// PyTorch names the archive after the file; readers take any single folder.
constexpr absl::string_view kFolder = "archive/";

// Returns the typed storage class for `dtype`, or "" for the types that came
// after them and are rebuilt from untyped storage.
absl::string_view StorageClass(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "BoolStorage";
    case DType::kU8:
      return "ByteStorage";
    case DType::kI8:
      return "CharStorage";
    case DType::kI16:
      return "ShortStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI64:
      return "LongStorage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kBF16:
      return "BFloat16Storage";
    case DType::kF32:
      return "FloatStorage";
    case DType::kF64:
      return "DoubleStorage";
    case DType::kC64:
      return "ComplexFloatStorage";
    default:
      return "";
  }
}

// The view as PyTorch counts it: F4 goes two to an element.
absl::StatusOr<TensorView> AsTorch(const TensorView& view) {
  if (GetDTypeInfo(view.dtype).torch_name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("found a tensor of ", DTypeName(view.dtype),
                     ", expected a type that PyTorch has"));
  }
  TensorView result = view;
  if (view.dtype == DType::kF4) {
    if (view.shape.empty() || view.shape.back() % 2 != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("found F4 ", ShapeToString(view.shape),
                       ", expected an even last dimension"));
    }
    result.shape.back() /= 2;
  }
  return result;
}

void PickleInts(const std::vector<int64_t>& values, PickleWriter& pickle) {
  pickle.Mark();
  for (const int64_t value : values) pickle.Int(value);
  pickle.TupleFromMark();
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

// torch._utils._rebuild_tensor_v2(storage, offset, size, stride,
// requires_grad, hooks), or _v3 with the dtype besides.
void PickleTensor(const TensorView& view, int storage, PickleWriter& pickle) {
  const absl::string_view typed = StorageClass(view.dtype);
  const bool is_typed = !typed.empty();
  pickle.Global("torch._utils",
                is_typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  pickle.Mark();
  pickle.Mark();
  pickle.String("storage");
  if (is_typed) {
    pickle.Global("torch", typed);
  } else {
    pickle.Global("torch.storage", "UntypedStorage");
  }
  pickle.String(absl::StrCat(storage));
  pickle.String("cpu");
  const int64_t size_bytes = view.bytes.size();
  pickle.Int(is_typed ? size_bytes * 8 / DTypeBits(view.dtype) : size_bytes);
  pickle.TupleFromMark();
  pickle.PersistentId();
  pickle.Int(0);
  PickleInts(view.shape, pickle);
  PickleInts(RowMajorStrides(view.shape), pickle);
  pickle.False();
  pickle.Global("collections", "OrderedDict");
  pickle.EmptyTuple();
  pickle.Reduce();
  if (!is_typed) {
    pickle.Global("torch", GetDTypeInfo(view.dtype).torch_name);
  }
  pickle.TupleFromMark();
  pickle.Reduce();
}

absl::Status WriteArchive(const std::string& path, std::string pickle,
                          const std::vector<TensorView>& views) {
  FF_ASSIGN_OR_RETURN(ZipWriter zip, ZipWriter::Create(path));
  const auto name = [](absl::string_view member) {
    return absl::StrCat(kFolder, member);
  };
  FF_RETURN_IF_ERROR(zip.Add(name("data.pkl"), pickle));
  FF_RETURN_IF_ERROR(zip.Add(name("byteorder"), "little"));
  for (size_t i = 0; i < views.size(); ++i) {
    FF_RETURN_IF_ERROR(zip.Add(name(absl::StrCat("data/", i)), views[i].bytes,
                               kTorchStorageAlignment));
  }
  FF_RETURN_IF_ERROR(zip.Add(name("version"), "3\n"));
  return zip.Finish();
}

}  // namespace

absl::Status WriteTorchTensor(const std::string& path, const TensorView& view) {
  const absl::StatusOr<TensorView> torch_view = AsTorch(view);
  FF_RETURN_IF_ERROR(Annotate(torch_view.status(), path));
  PickleWriter pickle;
  PickleTensor(*torch_view, 0, pickle);
  return WriteArchive(path, std::move(pickle).Finish(), {*torch_view});
}

absl::Status WriteTorchDict(const std::string& path,
                            absl::Span<const NamedTensor> tensors) {
  PickleWriter pickle;
  std::vector<TensorView> views;
  absl::flat_hash_set<absl::string_view> names;
  pickle.EmptyDict();
  pickle.Mark();
  for (const NamedTensor& tensor : tensors) {
    const absl::StatusOr<TensorView> view = AsTorch(tensor.view);
    FF_RETURN_IF_ERROR(Annotate(
        view.status(), absl::StrCat(path, ": tensor '", tensor.name, "'")));
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": found the name '", tensor.name, "' twice, expected once"));
    }
    pickle.String(tensor.name);
    PickleTensor(*view, static_cast<int>(views.size()), pickle);
    views.push_back(*view);
  }
  pickle.SetItemsFromMark();
  return WriteArchive(path, std::move(pickle).Finish(), views);
}

}  // namespace firstframe
