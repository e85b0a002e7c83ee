#include "lib/trace/trace_summary.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace firstframe {

bool IsCollective(absl::string_view kernel_name) {
  return absl::StartsWithIgnoreCase(kernel_name, "nccl") ||
         absl::StrContains(kernel_name, "nccl") ||
         absl::StrContains(kernel_name, "Nccl");
}

std::string WorkClass(const GpuWorkRow& row) {
  const std::string op = absl::AsciiStrToLower(row.op);
  const auto op_has = [&](absl::string_view word) {
    return absl::StrContains(op, word);
  };
  const auto kernel_has = [&](absl::string_view word) {
    return absl::StrContains(row.name, word);
  };
  if (IsCollective(row.name)) return "comm";
  for (absl::string_view gemm :
       {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm",
        "aten::_scaled_mm", "aten::matmul", "aten::linear", "aten::addbmm"}) {
    if (op == gemm) return "GEMM";
  }
  if (op_has("gemm")) return "GEMM";
  if (op_has("conv")) return "CONV";
  if (op_has("norm")) return "NORM";
  if (absl::StartsWith(op, "triton") || absl::StartsWith(row.name, "triton")) {
    return "triton";
  }
  if (op_has("attention") || op_has("attn")) return "attention";
  if (row.kind != TraceEventKind::kKernel) return "copy";
  // Work of a graph or a compiled region has no operator of its own: cuBLAS,
  // CUTLASS and Tensile name their kernels.
  for (absl::string_view gemm : {"gemm", "Gemm", "Cijk_", "nvjet_"}) {
    if (kernel_has(gemm)) return "GEMM";
  }
  if (kernel_has("reduce_kernel")) return "reduce";
  if (kernel_has("elementwise_kernel")) return "elementwise";
  return "other";
}

}  // namespace firstframe
