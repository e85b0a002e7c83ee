#include "lib/wan_vae/synthetic_checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/sharded_writer.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/host_tensor.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/parallel.h"
#include "lib/wan_vae/synthetic.h"
#include "lib/wan_vae/weights.h"

namespace firstframe {
namespace {

constexpr char kStem[] = "diffusion_pytorch_model";
// As diffusers writes it; transformers and diffusers ask for it.
const SafetensorsMetadata kMetadata = {{"format", "pt"}};

// Elements that one thread makes at a time.
constexpr int64_t kPiece = 64 << 10;

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat(folder, ": ", error.message()));
}

// Fills `tensor` with the values of `name`, made on all threads.
absl::Status Fill(const std::string& name, const Shape& shape,
                  HostTensor& tensor) {
  const int64_t count = tensor.num_elements();
  const int64_t bytes = DTypeBits(tensor.dtype()) / 8;
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  absl::Status status;
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> values(tensor.dtype() == DType::kF32 ? 0 : kPiece);
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kPiece;
      const int64_t size = std::min(kPiece, count - first);
      if (tensor.dtype() == DType::kF32) {
        FillSynthetic(name, shape, first,
                      tensor.mutable_data<float>().subspan(first, size));
        continue;
      }
      const auto part = absl::MakeSpan(values).first(size);
      FillSynthetic(name, shape, first, part);
      const absl::Status converted = ConvertFromFloat(
          part, tensor.dtype(),
          tensor.mutable_bytes().subspan(first * bytes, size * bytes));
      // The same for every piece of a type, and checked before the first.
      if (!converted.ok() && piece == 0) status = converted;
    }
  });
  return status;
}

struct Source {
  TensorSpec spec;        // as written
  std::string seed_name;  // whose values it gets
};

absl::StatusOr<SyntheticResult> Write(const std::string& folder,
                                      const std::string& stem,
                                      const std::vector<Source>& sources,
                                      const SyntheticOptions& options) {
  SyntheticResult result = {.num_tensors =
                                static_cast<int64_t>(sources.size())};
  std::vector<TensorSpec> specs;
  for (const Source& source : sources) {
    specs.push_back(source.spec);
    result.size_bytes +=
        CheckedSizeBytes(source.spec.dtype, source.spec.shape).value_or(0);
  }
  FF_RETURN_IF_ERROR(MakeFolder(folder));
  FF_ASSIGN_OR_RETURN(
      ShardedSafetensorsWriter writer,
      ShardedSafetensorsWriter::Create(folder, stem, std::move(specs),
                                       kMetadata, options.num_shards));
  uint64_t done = 0;
  for (const auto& [spec, seed_name] : sources) {
    if (options.is_cancelled && options.is_cancelled()) {
      return absl::CancelledError("cancelled");
    }
    FF_ASSIGN_OR_RETURN(
        HostTensor tensor,
        HostTensor::Create(spec.dtype, spec.shape, HostTensor::Fill::kNone));
    FF_RETURN_IF_ERROR(Fill(seed_name, spec.shape, tensor));
    FF_RETURN_IF_ERROR(writer.Write(spec.name, tensor.bytes()));
    done += tensor.size_bytes();
    if (options.progress && result.size_bytes > 0) {
      options.progress(static_cast<double>(done) /
                       static_cast<double>(result.size_bytes));
    }
  }
  FF_RETURN_IF_ERROR(writer.Finish());
  result.paths = writer.paths();
  return result;
}

}  // namespace

absl::StatusOr<SyntheticResult> WriteSyntheticVae(
    const std::string& folder, const WanVaeConfig& config, bool original_names,
    const SyntheticOptions& options) {
  FF_RETURN_IF_ERROR(ValidateWanVaeConfig(config));
  const ModuleTree tree = BuildModuleTree(config);
  std::vector<Source> sources;
  for (const ParameterSpec& parameter : tree.parameters) {
    Source source = {.spec = {parameter.name, options.dtype, parameter.shape},
                     .seed_name = parameter.name};
    if (original_names) source.spec.name = OriginalName(parameter.name, config);
    sources.push_back(std::move(source));
  }
  FF_ASSIGN_OR_RETURN(SyntheticResult result,
                      Write(folder, kStem, sources, options));
  const std::string path = absl::StrCat(folder, "/config.json");
  FF_RETURN_IF_ERROR(WriteOutputFile(path, WanVaeConfigToJson(config)));
  result.paths.push_back(path);
  return result;
}

absl::StatusOr<std::vector<TensorSpec>> PlanUniformTensors(int64_t num_tensors,
                                                           uint64_t size_bytes,
                                                           DType dtype) {
  constexpr int64_t kColumns = 128;
  const uint64_t elements = size_bytes / (DTypeBits(dtype) / 8);
  if (num_tensors < 1 || elements < static_cast<uint64_t>(num_tensors) ||
      elements > uint64_t{1} << 60) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_tensors, " tensors in ", size_bytes,
                     " bytes, expected at least one element for each"));
  }
  const int64_t least = static_cast<int64_t>(elements) / num_tensors;
  const int64_t longer = static_cast<int64_t>(elements) % num_tensors;
  std::vector<TensorSpec> specs;
  specs.reserve(num_tensors);
  for (int64_t i = 0; i < num_tensors; ++i) {
    const int64_t size = least + (i < longer ? 1 : 0);
    Shape shape = {size};
    if (size % kColumns == 0) shape = {size / kColumns, kColumns};
    specs.push_back(
        {absl::StrCat("layers.", i, ".weight"), dtype, std::move(shape)});
  }
  return specs;
}

absl::StatusOr<SyntheticResult> WriteSyntheticTensors(
    const std::string& folder, const std::string& stem,
    const std::vector<TensorSpec>& specs, const SyntheticOptions& options) {
  std::vector<Source> sources;
  sources.reserve(specs.size());
  for (const TensorSpec& spec : specs) sources.push_back({spec, spec.name});
  return Write(folder, stem, sources, options);
}

}  // namespace firstframe
