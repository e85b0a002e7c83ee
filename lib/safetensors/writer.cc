#include "lib/safetensors/writer.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/checked_math.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/base/utf8.h"
#include "lib/safetensors/finding.h"
#include "lib/safetensors/header.h"

namespace firstframe {
namespace {

constexpr absl::string_view kMetadataKey = "__metadata__";
constexpr uint64_t kHeaderAlignment = 8;

absl::Status CheckName(absl::string_view name) {
  const char* problem = nullptr;
  if (name == kMetadataKey) problem = "is what the format calls its metadata";
  if (absl::StrContains(name, '\0')) problem = "holds a NUL";
  if (FindInvalidUtf8(name) != name.size()) problem = "is not UTF-8";
  if (problem == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the name ", QuoteName(name), " ", problem));
}

absl::Status CheckMetadata(const SafetensorsMetadata& metadata) {
  absl::flat_hash_set<absl::string_view> keys;
  for (const auto& [key, value] : metadata) {
    if (!keys.insert(key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the metadata key ", QuoteName(key), " comes twice"));
    }
    if (FindInvalidUtf8(key) != key.size() ||
        FindInvalidUtf8(value) != value.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the metadata of ", QuoteName(key), " is not UTF-8"));
    }
  }
  return absl::OkStatus();
}

// The reference orders by its enumeration of types, which ours repeats.
bool ComesFirst(const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype) return a.dtype > b.dtype;
  return a.name < b.name;
}

absl::Status PlaceTensors(std::vector<TensorSpec> specs,
                          SafetensorsPlan& plan) {
  std::sort(specs.begin(), specs.end(), ComesFirst);
  absl::flat_hash_set<absl::string_view> names;
  for (const TensorSpec& spec : specs) {
    FF_RETURN_IF_ERROR(CheckName(spec.name));
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name ", QuoteName(spec.name), " comes twice"));
    }
    const auto size = CheckedSizeBytes(spec.dtype, spec.shape);
    const auto end =
        size ? CheckedAdd(static_cast<uint64_t>(*size), plan.data_size)
             : std::nullopt;
    if (!end) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", QuoteName(spec.name), ": ", DTypeName(spec.dtype), " ",
          ShapeToString(spec.shape), " has no size in whole bytes"));
    }
    plan.tensors.push_back(
        {spec, plan.data_size, static_cast<uint64_t>(*size)});
    plan.data_size = *end;
  }
  return absl::OkStatus();
}

void AppendEntry(const SafetensorsPlan::Tensor& tensor, JsonWriter& json) {
  json.Key(tensor.spec.name).BeginObject();
  json.Key("dtype").String(DTypeName(tensor.spec.dtype));
  json.Key("shape").BeginArray();
  for (const int64_t size : tensor.spec.shape) json.Int(size);
  json.EndArray();
  json.Key("data_offsets").BeginArray();
  json.Uint(tensor.begin).Uint(tensor.begin + tensor.size_bytes);
  json.EndArray();
  json.EndObject();
}

absl::string_view AsText(absl::Span<const std::byte> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size());
}

}  // namespace

absl::StatusOr<SafetensorsPlan> PlanSafetensors(
    std::vector<TensorSpec> specs, const SafetensorsMetadata& metadata) {
  SafetensorsPlan plan;
  FF_RETURN_IF_ERROR(CheckMetadata(metadata));
  FF_RETURN_IF_ERROR(PlaceTensors(std::move(specs), plan));
  plan.prefix.assign(kHeaderPrefixSize, '\0');
  JsonWriter json(&plan.prefix);
  json.BeginObject();
  if (!metadata.empty()) {
    json.Key(kMetadataKey).BeginObject();
    for (const auto& [key, value] : metadata) json.Key(key).String(value);
    json.EndObject();
  }
  for (const SafetensorsPlan::Tensor& tensor : plan.tensors) {
    AppendEntry(tensor, json);
  }
  json.EndObject();
  while (plan.prefix.size() % kHeaderAlignment != 0) plan.prefix += ' ';
  const uint64_t length = plan.prefix.size() - kHeaderPrefixSize;
  if (length > kMaxHeaderSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("a header of ", length, " bytes for ", plan.tensors.size(),
                     " tensors, expected at most ", kMaxHeaderSize,
                     ": write the tensors to several files"));
  }
  std::memcpy(plan.prefix.data(), &length, sizeof(length));
  return plan;
}

SafetensorsWriter::SafetensorsWriter(SafetensorsPlan plan, OutputFile file)
    : plan_(std::move(plan)),
      file_(std::move(file)),
      written_(plan_.tensors.size()) {
  for (size_t i = 0; i < plan_.tensors.size(); ++i) {
    by_name_.emplace(plan_.tensors[i].spec.name, i);
  }
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, std::vector<TensorSpec> specs,
    const SafetensorsMetadata& metadata) {
  auto plan = PlanSafetensors(std::move(specs), metadata);
  FF_RETURN_IF_ERROR(Annotate(plan.status(), path));
  FF_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  FF_RETURN_IF_ERROR(file.Write(plan->prefix));
  return SafetensorsWriter(*std::move(plan), std::move(file));
}

absl::Status SafetensorsWriter::Write(absl::string_view name,
                                      absl::Span<const std::byte> bytes) {
  const auto it = by_name_.find(name);
  if (it != by_name_.end() &&
      bytes.size() != plan_.tensors[it->second].size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_.path(), ": tensor ", QuoteName(name), ": found ", bytes.size(),
        " bytes, expected ", plan_.tensors[it->second].size_bytes));
  }
  return WritePart(name, 0, bytes);
}

absl::Status SafetensorsWriter::WritePart(absl::string_view name,
                                          uint64_t offset,
                                          absl::Span<const std::byte> bytes) {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": tensor ", QuoteName(name),
                     ": found no such name in the header, expected one of ",
                     plan_.tensors.size()));
  }
  const SafetensorsPlan::Tensor& tensor = plan_.tensors[it->second];
  if (offset > tensor.size_bytes || bytes.size() > tensor.size_bytes - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": tensor ", QuoteName(name), ": found ",
                     bytes.size(), " bytes at byte ", offset,
                     ", expected at most ", tensor.size_bytes, " in all"));
  }
  FF_RETURN_IF_ERROR(file_.WriteAt(plan_.prefix.size() + tensor.begin + offset,
                                   AsText(bytes)));
  written_[it->second] += bytes.size();
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish(bool sync) {
  for (size_t i = 0; i < written_.size(); ++i) {
    const SafetensorsPlan::Tensor& tensor = plan_.tensors[i];
    if (written_[i] == tensor.size_bytes) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        file_.path(), ": tensor ", QuoteName(tensor.spec.name), ": found ",
        written_[i], " bytes written, expected ", tensor.size_bytes));
  }
  return file_.Commit(sync);
}

absl::Status WriteSafetensors(const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata) {
  std::vector<TensorSpec> specs;
  for (const NamedTensor& tensor : tensors) {
    specs.push_back({tensor.name, tensor.view.dtype, tensor.view.shape});
  }
  FF_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(path, specs, metadata));
  for (const NamedTensor& tensor : tensors) {
    FF_RETURN_IF_ERROR(writer.Write(tensor.name, tensor.view.bytes));
  }
  return writer.Finish();
}

}  // namespace firstframe
