#include "lib/safetensors/diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/finding.h"
#include "lib/tensor/convert.h"

namespace firstframe {
namespace {

// Elements at a time; a multiple of 8, so that every type fills whole bytes.
constexpr int64_t kBlockElements = 1 << 18;

bool HasFloatReading(DType dtype) {
  return dtype != DType::kC64 && dtype != DType::kF6E2M3 &&
         dtype != DType::kF6E3M2;
}

// Sums over the pairs of one tensor.
class ValueSums {
 public:
  void Add(float a, float b, bool same) {
    ++result_.elements;
    const bool finite = std::isfinite(a) && std::isfinite(b);
    const double difference = static_cast<double>(a) - b;
    if (finite) {
      squares_ += static_cast<double>(a) * a;
      squared_error_ += difference * difference;
    }
    if (same) return;
    ++result_.differing;
    if (finite) {
      result_.max_abs = std::max(result_.max_abs, std::abs(difference));
    } else {
      ++result_.non_finite;
    }
  }

  ValueDifference Finish() const {
    ValueDifference result = result_;
    if (squares_ > 0) result.relative_l2 = std::sqrt(squared_error_ / squares_);
    return result;
  }

 private:
  ValueDifference result_;
  double squares_ = 0;
  double squared_error_ = 0;
};

class Differ {
 public:
  Differ(const Checkpoint& a, const Checkpoint& b,
         const CheckpointReader& reader_a, const CheckpointReader& reader_b)
      : a_(a), b_(b), reader_a_(reader_a), reader_b_(reader_b) {}

  // Returns how the tensors differ, or nothing when they are equal.
  absl::StatusOr<std::optional<TensorDifference>> Compare(
      CheckpointEntry in_a, CheckpointEntry in_b) {
    const SafetensorsTensor& a = a_.tensor(in_a);
    const SafetensorsTensor& b = b_.tensor(in_b);
    TensorDifference difference;
    difference.tensor = a.name;
    difference.dtype_a = a.dtype;
    difference.dtype_b = b.dtype;
    difference.shape_a = a.shape;
    difference.shape_b = b.shape;
    if (a.shape != b.shape) {
      difference.kind = TensorDifference::Kind::kShape;
      return difference;
    }
    const bool same_type = a.dtype == b.dtype;
    difference.kind = same_type ? TensorDifference::Kind::kValues
                                : TensorDifference::Kind::kDType;
    const bool readable = HasFloatReading(a.dtype) && HasFloatReading(b.dtype);
    if (!same_type && !readable) return difference;
    ValueSums sums;
    bool is_equal = true;
    const int64_t count = a.size_bytes() * 8 / DTypeBits(a.dtype);
    for (int64_t begin = 0; begin < count; begin += kBlockElements) {
      const int64_t size = std::min(kBlockElements, count - begin);
      FF_RETURN_IF_ERROR(ReadBlock(in_a, in_b, begin, size));
      if (same_type && bytes_a_ == bytes_b_ && !readable) continue;
      is_equal &= same_type && bytes_a_ == bytes_b_;
      if (readable) FF_RETURN_IF_ERROR(AddBlock(a.dtype, b.dtype, sums));
    }
    if (same_type && is_equal) return std::nullopt;
    if (readable) difference.values = sums.Finish();
    return difference;
  }

 private:
  absl::Status ReadBlock(CheckpointEntry in_a, CheckpointEntry in_b,
                         int64_t begin, int64_t size) {
    const auto read = [&](const Checkpoint& checkpoint,
                          const CheckpointReader& reader, CheckpointEntry entry,
                          std::vector<std::byte>& bytes) {
      const int64_t bits = DTypeBits(checkpoint.tensor(entry).dtype);
      bytes.resize(size * bits / 8);
      return reader.file(entry.file)
          .Read(checkpoint.file_offset(entry) + begin * bits / 8,
                absl::MakeSpan(bytes));
    };
    FF_RETURN_IF_ERROR(read(a_, reader_a_, in_a, bytes_a_));
    FF_RETURN_IF_ERROR(read(b_, reader_b_, in_b, bytes_b_));
    floats_a_.resize(size);
    floats_b_.resize(size);
    return absl::OkStatus();
  }

  absl::Status AddBlock(DType dtype_a, DType dtype_b, ValueSums& sums) {
    FF_RETURN_IF_ERROR(
        ConvertToFloat(dtype_a, bytes_a_, absl::MakeSpan(floats_a_)));
    FF_RETURN_IF_ERROR(
        ConvertToFloat(dtype_b, bytes_b_, absl::MakeSpan(floats_b_)));
    // Types wider than float32 differ in bits that the reading does not show.
    const bool by_bits = dtype_a == dtype_b && DTypeBits(dtype_a) >= 8;
    const size_t width = DTypeBits(dtype_a) / 8;
    for (size_t i = 0; i < floats_a_.size(); ++i) {
      const float a = floats_a_[i], b = floats_b_[i];
      const bool same = by_bits
                            ? std::memcmp(&bytes_a_[i * width],
                                          &bytes_b_[i * width], width) == 0 ||
                                  (a != a && b != b)
                            : a == b || (a != a && b != b);
      sums.Add(a, b, same);
    }
    return absl::OkStatus();
  }

  const Checkpoint& a_;
  const Checkpoint& b_;
  const CheckpointReader& reader_a_;
  const CheckpointReader& reader_b_;
  std::vector<std::byte> bytes_a_, bytes_b_;
  std::vector<float> floats_a_, floats_b_;
};

absl::string_view KindName(TensorDifference::Kind kind) {
  switch (kind) {
    case TensorDifference::Kind::kOnlyInA:
      return "only_in_a";
    case TensorDifference::Kind::kOnlyInB:
      return "only_in_b";
    case TensorDifference::Kind::kShape:
      return "shape";
    case TensorDifference::Kind::kDType:
      return "dtype";
    case TensorDifference::Kind::kValues:
      return "values";
  }
  return "";
}

std::string Describe(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), " ", ShapeToString(shape));
}

std::string DescribeValues(const ValueDifference& values) {
  std::string text = absl::StrCat(
      values.differing, " of ", values.elements, " elements differ, by ",
      absl::StrFormat("%.6g", values.max_abs), " at most");
  if (values.relative_l2.has_value()) {
    absl::StrAppend(&text, ", relative L2 ",
                    absl::StrFormat("%.6g", *values.relative_l2));
  }
  if (values.non_finite > 0) {
    absl::StrAppend(&text, ", ", values.non_finite, " not finite");
  }
  return text;
}

void WriteSide(absl::string_view side, DType dtype, const Shape& shape,
               JsonWriter& json) {
  json.Key(absl::StrCat("dtype_", side)).String(DTypeName(dtype));
  json.Key(absl::StrCat("shape_", side)).BeginArray();
  for (const int64_t size : shape) json.Int(size);
  json.EndArray();
}

}  // namespace

absl::StatusOr<DiffTotals> DiffCheckpoints(
    const Checkpoint& a, const Checkpoint& b,
    const std::function<void(const TensorDifference&)>& visit) {
  FF_ASSIGN_OR_RETURN(const CheckpointReader reader_a,
                      CheckpointReader::Open(a));
  FF_ASSIGN_OR_RETURN(const CheckpointReader reader_b,
                      CheckpointReader::Open(b));
  Differ differ(a, b, reader_a, reader_b);
  DiffTotals totals;
  const auto only = [&](const SafetensorsTensor& tensor,
                        TensorDifference::Kind kind) {
    TensorDifference difference;
    difference.kind = kind;
    difference.tensor = tensor.name;
    difference.dtype_a = difference.dtype_b = tensor.dtype;
    difference.shape_a = difference.shape_b = tensor.shape;
    visit(difference);
  };
  for (const CheckpointEntry entry : a.entries()) {
    const SafetensorsTensor& tensor = a.tensor(entry);
    const CheckpointEntry* const other = b.Find(tensor.name);
    if (other == nullptr) {
      ++totals.only_in_a;
      only(tensor, TensorDifference::Kind::kOnlyInA);
      continue;
    }
    ++totals.compared;
    FF_ASSIGN_OR_RETURN(const auto difference, differ.Compare(entry, *other));
    ++(difference.has_value() ? totals.different : totals.equal);
    if (difference.has_value()) visit(*difference);
  }
  for (const CheckpointEntry entry : b.entries()) {
    const SafetensorsTensor& tensor = b.tensor(entry);
    if (a.Find(tensor.name) != nullptr) continue;
    ++totals.only_in_b;
    only(tensor, TensorDifference::Kind::kOnlyInB);
  }
  return totals;
}

void WriteDifferenceText(const TensorDifference& difference,
                         std::ostream& out) {
  using Kind = TensorDifference::Kind;
  const std::string a = Describe(difference.dtype_a, difference.shape_a);
  const std::string b = Describe(difference.dtype_b, difference.shape_b);
  out << QuoteName(difference.tensor) << ": ";
  switch (difference.kind) {
    case Kind::kOnlyInA:
      out << "only in A, " << a;
      break;
    case Kind::kOnlyInB:
      out << "only in B, " << b;
      break;
    case Kind::kShape:
    case Kind::kDType:
      out << a << " in A, " << b << " in B";
      break;
    case Kind::kValues:
      out << "values differ";
      break;
  }
  if (difference.values.has_value()) {
    out << ": " << DescribeValues(*difference.values);
  }
  out << '\n';
}

void WriteDifferenceJsonl(const TensorDifference& difference,
                          std::ostream& out) {
  using Kind = TensorDifference::Kind;
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("difference");
  json.Key("what").String(KindName(difference.kind));
  json.Key("tensor").String(difference.tensor);
  if (difference.kind != Kind::kOnlyInB) {
    WriteSide("a", difference.dtype_a, difference.shape_a, json);
  }
  if (difference.kind != Kind::kOnlyInA) {
    WriteSide("b", difference.dtype_b, difference.shape_b, json);
  }
  if (difference.values.has_value()) {
    const ValueDifference& values = *difference.values;
    json.Key("elements").Uint(values.elements);
    json.Key("differing").Uint(values.differing);
    json.Key("non_finite").Uint(values.non_finite);
    json.Key("max_abs").Double(values.max_abs);
    json.Key("relative_l2").OptionalDouble(values.relative_l2);
  }
  json.EndObject();
  out << line << '\n';
}

void WriteDiffTotalsText(const DiffTotals& totals, std::ostream& out) {
  out << totals.compared << " tensors in both, " << totals.equal << " equal, "
      << totals.different << " different; " << totals.only_in_a
      << " only in A, " << totals.only_in_b << " only in B\n";
}

void WriteDiffTotalsJsonl(const DiffTotals& totals, std::ostream& out) {
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("total");
  json.Key("compared").Uint(totals.compared);
  json.Key("equal").Uint(totals.equal);
  json.Key("different").Uint(totals.different);
  json.Key("only_in_a").Uint(totals.only_in_a);
  json.Key("only_in_b").Uint(totals.only_in_b);
  json.EndObject();
  out << line << '\n';
}

}  // namespace firstframe
