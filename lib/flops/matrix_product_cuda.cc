#include <cublasLt.h>
#include <cublas_v2.h>

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/known_libraries.h"
#include "lib/flops/matrix_product.h"

namespace firstframe {
namespace {

absl::Status Refused(MathType math, const char* call, cublasStatus_t status) {
  return absl::InternalError(absl::StrCat(
      MathTypeName(math), " product: ", call, " gave status ", status));
}

// As in cublas_api.h, whose C++ form is overloaded.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t,
                              cublasOperation_t, int, int, int, const void*,
                              const void*, cudaDataType, int, const void*,
                              cudaDataType, int, const void*, void*,
                              cudaDataType, int, cublasComputeType_t,
                              cublasGemmAlgo_t);

struct GemmChoice {
  cudaDataType_t type;
  cublasComputeType_t compute;
};

GemmChoice GemmChoiceOf(MathType math) {
  switch (math) {
    case MathType::kTf32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case MathType::kBf16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    case MathType::kFp16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F};
    default:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
}

class GemmProduct : public MatrixProduct {
 public:
  static absl::StatusOr<std::unique_ptr<MatrixProduct>> Create(
      MathType math, int64_t size, const cuda::Stream& stream,
      const cuda::LibrarySearch& search) {
    FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                        cuda::DynamicLibrary::Open(cuda::kCublas, search));
    auto product = std::unique_ptr<GemmProduct>(new GemmProduct(math, size));
    FF_ASSIGN_OR_RETURN(
        auto* const create,
        library.Find<decltype(cublasCreate_v2)>("cublasCreate_v2"));
    FF_ASSIGN_OR_RETURN(
        auto* const set_stream,
        library.Find<decltype(cublasSetStream_v2)>("cublasSetStream_v2"));
    FF_ASSIGN_OR_RETURN(
        product->destroy_,
        library.Find<decltype(cublasDestroy_v2)>("cublasDestroy_v2"));
    FF_ASSIGN_OR_RETURN(product->gemm_, library.Find<GemmEx>("cublasGemmEx"));
    if (create(&product->handle_) != CUBLAS_STATUS_SUCCESS) {
      return absl::UnavailableError("cuBLAS could not be initialised");
    }
    if (const cublasStatus_t status = set_stream(
            product->handle_, static_cast<cudaStream_t>(stream.handle()));
        status != CUBLAS_STATUS_SUCCESS) {
      return Refused(math, "cublasSetStream", status);
    }
    return product;
  }

  ~GemmProduct() override {
    if (handle_ != nullptr) destroy_(handle_);
  }

  absl::Status Enqueue(const void* left, const void* right,
                       void* out) override {
    const float one = 1;
    const float zero = 0;
    const auto [type, compute] = GemmChoiceOf(math_);
    const cublasStatus_t status =
        gemm_(handle_, CUBLAS_OP_T, CUBLAS_OP_N, size_, size_, size_, &one,
              left, type, size_, right, type, size_, &zero, out, type, size_,
              compute, CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return Refused(math_, "cublasGemmEx", status);
  }

 private:
  GemmProduct(MathType math, int64_t size)
      : math_(math), size_(static_cast<int>(size)) {}

  const MathType math_;
  const int size_;
  cublasHandle_t handle_ = nullptr;
  decltype(cublasDestroy_v2)* destroy_ = nullptr;
  GemmEx* gemm_ = nullptr;
};

// fp8 has no product in cuBLAS itself.
class LtProduct : public MatrixProduct {
 public:
  static absl::StatusOr<std::unique_ptr<MatrixProduct>> Create(
      int64_t size, const cuda::Stream& stream,
      const cuda::LibrarySearch& search) {
    FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                        cuda::DynamicLibrary::Open(cuda::kCublasLt, search));
    auto product = std::unique_ptr<LtProduct>(new LtProduct(stream));
    FF_RETURN_IF_ERROR(product->FindFunctions(library));
    if (product->f_.create(&product->handle_) != CUBLAS_STATUS_SUCCESS) {
      return absl::UnavailableError("cuBLASLt could not be initialised");
    }
    FF_RETURN_IF_ERROR(product->Describe(static_cast<uint64_t>(size)));
    FF_ASSIGN_OR_RETURN(product->workspace_,
                        stream.runtime().Allocate(kWorkspaceBytes));
    return product;
  }

  ~LtProduct() override {
    if (workspace_ != nullptr) {
      stream_.runtime().Free(workspace_).IgnoreError();
    }
    if (out_layout_ != nullptr) f_.destroy_layout(out_layout_);
    if (in_layout_ != nullptr) f_.destroy_layout(in_layout_);
    if (operation_ != nullptr) f_.destroy_operation(operation_);
    if (handle_ != nullptr) f_.destroy(handle_);
  }

  absl::Status Enqueue(const void* left, const void* right,
                       void* out) override {
    const float one = 1;
    const float zero = 0;
    const cublasStatus_t status = f_.multiply(
        handle_, operation_, &one, left, in_layout_, right, in_layout_, &zero,
        out, out_layout_, out, out_layout_, &algorithm_, workspace_,
        kWorkspaceBytes, static_cast<cudaStream_t>(stream_.handle()));
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return Refused(MathType::kFp8, "cublasLtMatmul", status);
  }

 private:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // as torch's

  struct Functions {
    decltype(cublasLtCreate)* create;
    decltype(cublasLtDestroy)* destroy;
    decltype(cublasLtMatmulDescCreate)* create_operation;
    decltype(cublasLtMatmulDescDestroy)* destroy_operation;
    decltype(cublasLtMatmulDescSetAttribute)* set_operation;
    decltype(cublasLtMatrixLayoutCreate)* create_layout;
    decltype(cublasLtMatrixLayoutDestroy)* destroy_layout;
    decltype(cublasLtMatmulPreferenceCreate)* create_preference;
    decltype(cublasLtMatmulPreferenceDestroy)* destroy_preference;
    decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference;
    decltype(cublasLtMatmulAlgoGetHeuristic)* choose;
    decltype(cublasLtMatmul)* multiply;
  };

  explicit LtProduct(const cuda::Stream& stream) : stream_(stream) {}

  absl::Status FindFunctions(const cuda::DynamicLibrary& library) {
    const auto find = [&library](const char* name,
                                 auto*& function) -> absl::Status {
      FF_ASSIGN_OR_RETURN(void* const symbol, library.FindSymbol(name));
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
      return absl::OkStatus();
    };
    FF_RETURN_IF_ERROR(find("cublasLtCreate", f_.create));
    FF_RETURN_IF_ERROR(find("cublasLtDestroy", f_.destroy));
    FF_RETURN_IF_ERROR(find("cublasLtMatmulDescCreate", f_.create_operation));
    FF_RETURN_IF_ERROR(find("cublasLtMatmulDescDestroy", f_.destroy_operation));
    FF_RETURN_IF_ERROR(
        find("cublasLtMatmulDescSetAttribute", f_.set_operation));
    FF_RETURN_IF_ERROR(find("cublasLtMatrixLayoutCreate", f_.create_layout));
    FF_RETURN_IF_ERROR(find("cublasLtMatrixLayoutDestroy", f_.destroy_layout));
    FF_RETURN_IF_ERROR(
        find("cublasLtMatmulPreferenceCreate", f_.create_preference));
    FF_RETURN_IF_ERROR(
        find("cublasLtMatmulPreferenceDestroy", f_.destroy_preference));
    FF_RETURN_IF_ERROR(
        find("cublasLtMatmulPreferenceSetAttribute", f_.set_preference));
    FF_RETURN_IF_ERROR(find("cublasLtMatmulAlgoGetHeuristic", f_.choose));
    return find("cublasLtMatmul", f_.multiply);
  }

  absl::Status Describe(uint64_t n) {
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const int8_t fast = 1;
    cublasStatus_t status =
        f_.create_operation(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const auto then = [&status](auto&& call) {
      if (status == CUBLAS_STATUS_SUCCESS) status = call();
    };
    then([&] {
      return f_.set_operation(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                              &transposed, sizeof transposed);
    });
    then([&] {
      return f_.set_operation(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                              &fast, sizeof fast);
    });
    then([&] {
      return f_.create_layout(&in_layout_, CUDA_R_8F_E4M3, n, n,
                              static_cast<int64_t>(n));
    });
    then([&] {
      return f_.create_layout(&out_layout_, CUDA_R_16BF, n, n,
                              static_cast<int64_t>(n));
    });
    if (status != CUBLAS_STATUS_SUCCESS) {
      return Refused(MathType::kFp8, "its description", status);
    }
    return Choose();
  }

  absl::Status Choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    cublasStatus_t status = f_.create_preference(&preference);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = f_.set_preference(preference,
                                 CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                 &kWorkspaceBytes, sizeof kWorkspaceBytes);
    }
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    if (status == CUBLAS_STATUS_SUCCESS) {
      status =
          f_.choose(handle_, operation_, in_layout_, in_layout_, out_layout_,
                    out_layout_, preference, 1, &result, &found);
    }
    if (preference != nullptr) f_.destroy_preference(preference);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
        (status == CUBLAS_STATUS_SUCCESS && found == 0)) {
      return absl::UnavailableError(
          "cuBLASLt has no fp8 product for this device, expected Ada, Hopper "
          "or newer");
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
      return Refused(MathType::kFp8, "cublasLtMatmulAlgoGetHeuristic", status);
    }
    algorithm_ = result.algo;
    return absl::OkStatus();
  }

  const cuda::Stream& stream_;
  Functions f_ = {};
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t in_layout_ = nullptr;
  cublasLtMatrixLayout_t out_layout_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  void* workspace_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MatrixProduct>> CreateMatrixProduct(
    MathType math, int64_t size, const cuda::Stream& stream,
    const cuda::LibrarySearch& search) {
  if (math == MathType::kFp8) return LtProduct::Create(size, stream, search);
  return GemmProduct::Create(math, size, stream, search);
}

}  // namespace firstframe
