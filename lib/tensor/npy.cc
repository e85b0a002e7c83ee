#include "lib/tensor/npy.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/file_reader.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/zip/zip_reader.h"

namespace firstframe {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaxRank = 64;

absl::string_view AsText(absl::Span<const std::byte> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size());
}

// "(2, 3)", "(2,)", "()".
std::string PythonTuple(const Shape& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    absl::StrAppend(&text, i ? ", " : "", shape[i]);
  }
  return absl::StrCat(text, shape.size() == 1 ? ",)" : ")");
}

// Reads the dictionary of a header: a Python literal whose three keys NumPy
// writes sorted, and reads in any order.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : rest_(text) {}

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;

  bool Read() {
    if (!Take("{")) return false;
    while (!Take("}")) {
      const std::optional<std::string> key = Quoted();
      if (!key || !Take(":") || !ReadValue(*key)) return false;
      if (!Take(",") && !Sees("}")) return false;
    }
    return descr && fortran_order && shape;
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) {
      rest_.remove_prefix(1);
    }
  }
  bool Sees(absl::string_view text) {
    SkipSpace();
    return absl::StartsWith(rest_, text);
  }
  bool Take(absl::string_view text) {
    SkipSpace();
    return absl::ConsumePrefix(&rest_, text);
  }
  std::optional<std::string> Quoted() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) {
      return std::nullopt;
    }
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool ReadValue(absl::string_view key) {
    if (key == "descr") return (descr = Quoted()).has_value();
    if (key == "fortran_order") {
      if (Take("True")) return (fortran_order = true).has_value();
      if (Take("False")) return (fortran_order = false).has_value();
      return false;
    }
    return key == "shape" && ReadShape();
  }
  bool ReadShape() {
    if (!Take("(")) return false;
    shape.emplace();
    while (!Take(")")) {
      SkipSpace();
      size_t digits = 0;
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) {
        ++digits;
      }
      int64_t size;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &size)) return false;
      rest_.remove_prefix(digits);
      (void)Take("L");  // Python 2 wrote 3L
      shape->push_back(size);
      if (shape->size() > kMaxRank) return false;
      if (!Take(",") && !Sees(")")) return false;
    }
    return true;
  }

  absl::string_view rest_;
};

std::optional<DType> ParseDescr(absl::string_view descr) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.numpy_name.empty()) continue;
    // "=" is the machine's order; single bytes have none.
    if (descr == info.numpy_name ||
        (descr.size() > 1 && descr.substr(1) == info.numpy_name.substr(1) &&
         (descr[0] == '=' || info.bits == 8))) {
      return info.dtype;
    }
  }
  return std::nullopt;
}

absl::Status Malformed(absl::string_view where, size_t position,
                       absl::string_view found, absl::string_view expected) {
  return absl::DataLossError(absl::StrCat(
      where, ": byte ", position, ": found ", found, ", expected ", expected));
}

// Copies column-major `source` into row-major `target`.
void Transpose(absl::string_view source, int64_t width, HostTensor& target) {
  const Shape& shape = target.shape();
  const size_t rank = shape.size();
  std::vector<int64_t> stride(rank, width), index(rank, 0);
  for (size_t i = 1; i < rank; ++i) stride[i] = stride[i - 1] * shape[i - 1];
  std::byte* out = target.mutable_bytes().data();
  for (int64_t n = target.num_elements(); n > 0; --n, out += width) {
    const int64_t at = std::inner_product(index.begin(), index.end(),
                                          stride.begin(), int64_t{0});
    std::memcpy(out, source.data() + at, width);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  FF_ASSIGN_OR_RETURN(const auto reader, FileReader::Open(path));
  std::string text(reader->size_bytes(), '\0');
  FF_RETURN_IF_ERROR(reader->Read(
      0,
      absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size())));
  return text;
}

}  // namespace

absl::Status WriteNpy(const std::string& path, const TensorView& view) {
  const absl::string_view descr = GetDTypeInfo(view.dtype).numpy_name;
  if (descr.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found a tensor of ", DTypeName(view.dtype),
        ", expected a type that NumPy has: convert it to F32 first"));
  }
  std::string header = absl::StrCat(
      "{'descr': '", descr,
      "', 'fortran_order': False, 'shape': ", PythonTuple(view.shape), ", }");
  constexpr size_t kPreamble = 10;  // magic, version, 2 bytes of length
  while ((kPreamble + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  FF_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::string start(kMagic);
  start.push_back(1);
  start.push_back(0);
  start.push_back(static_cast<char>(header.size() & 0xFF));
  start.push_back(static_cast<char>(header.size() >> 8));
  FF_RETURN_IF_ERROR(file.Write(start + header));
  FF_RETURN_IF_ERROR(file.Write(AsText(view.bytes)));
  return file.Commit();
}

absl::StatusOr<HostTensor> ParseNpy(absl::string_view where,
                                    absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic)) {
    return Malformed(where, 0, "other bytes", "the start of a .npy file");
  }
  const uint8_t major = bytes.size() > 6 ? static_cast<uint8_t>(bytes[6]) : 0;
  const size_t preamble = major == 1 ? 10 : 12;
  if (major < 1 || major > 3 || bytes.size() < preamble) {
    return Malformed(where, 6, absl::StrCat("version ", major),
                     "version 1 to 3 and a header");
  }
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, preamble - 8);
  if (bytes.size() - preamble < length) {
    return Malformed(where, 8, absl::StrCat("a header of ", length, " bytes"),
                     absl::StrCat("at most ", bytes.size() - preamble));
  }
  HeaderReader header(bytes.substr(preamble, length));
  if (!header.Read()) {
    return Malformed(where, preamble, "another header",
                     "a dictionary of descr, fortran_order and shape");
  }
  const std::optional<DType> dtype = ParseDescr(*header.descr);
  if (!dtype) {
    return absl::UnimplementedError(
        absl::StrCat(where, ": found the element type '", *header.descr,
                     "', expected a little-endian number type"));
  }
  const absl::string_view data = bytes.substr(preamble + length);
  const std::optional<int64_t> size = CheckedSizeBytes(*dtype, *header.shape);
  if (!size || static_cast<uint64_t>(*size) != data.size()) {
    return Malformed(
        where, preamble + length, absl::StrCat(data.size(), " bytes of data"),
        absl::StrCat(size ? absl::StrCat(*size) : "a size", " for ",
                     DTypeName(*dtype), " ", ShapeToString(*header.shape)));
  }
  FF_ASSIGN_OR_RETURN(
      HostTensor tensor,
      HostTensor::Create(*dtype, *header.shape, HostTensor::Fill::kNone));
  if (*header.fortran_order && tensor.shape().size() > 1) {
    Transpose(data, DTypeBits(*dtype) / 8, tensor);
  } else if (!data.empty()) {
    std::memcpy(tensor.mutable_bytes().data(), data.data(), data.size());
  }
  return tensor;
}

absl::StatusOr<HostTensor> ReadNpy(const std::string& path) {
  FF_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(path));
  return ParseNpy(path, bytes);
}

absl::StatusOr<std::vector<std::pair<std::string, HostTensor>>> ReadNpz(
    const std::string& path) {
  FF_ASSIGN_OR_RETURN(const ZipReader reader, ZipReader::Open(path));
  std::vector<std::pair<std::string, HostTensor>> arrays;
  for (const ZipMember& member : reader.members()) {
    FF_ASSIGN_OR_RETURN(const std::string bytes,
                        reader.Read(member, kMaxNpzMemberSize));
    const absl::string_view name = absl::StripSuffix(member.name, ".npy");
    FF_ASSIGN_OR_RETURN(HostTensor tensor,
                        ParseNpy(absl::StrCat(path, ": ", name), bytes));
    arrays.emplace_back(std::string(name), std::move(tensor));
  }
  return arrays;
}

}  // namespace firstframe
