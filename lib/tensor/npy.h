// NumPy's .npy and .npz files.
//
// Format: numpy/lib/format.py, versions 1.0 to 3.0. An .npz is a zip archive of
// .npy members.

#ifndef LIB_TENSOR_NPY_H_
#define LIB_TENSOR_NPY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/tensor/host_tensor.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

// Members of an .npz larger than this are refused: a deflated one may claim any
// size.
inline constexpr uint64_t kMaxNpzMemberSize = uint64_t{64} << 30;

// Writes `view` as a C-ordered array, version 1.0, data at a multiple of 64
// bytes. InvalidArgument for types that NumPy lacks (BF16, F8, F6, F4): convert
// those first.
absl::Status WriteNpy(const std::string& path, const TensorView& view);

// Returns the .npy file in `bytes`; `where` goes into errors. Fortran order is
// transposed to row-major. DataLoss for a malformed file; Unimplemented for
// types that DType lacks and for big-endian data.
absl::StatusOr<HostTensor> ParseNpy(absl::string_view where,
                                    absl::string_view bytes);

absl::StatusOr<HostTensor> ReadNpy(const std::string& path);

// Returns every array by its name without ".npy", in the order of the archive.
absl::StatusOr<std::vector<std::pair<std::string, HostTensor>>> ReadNpz(
    const std::string& path);

}  // namespace firstframe

#endif  // LIB_TENSOR_NPY_H_
