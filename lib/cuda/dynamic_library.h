// Opens a shared library at run time and finds its functions by name, so that
// one binary runs with and without cuDNN, NCCL, CUPTI and the like.
//
//   FF_ASSIGN_OR_RETURN(const DynamicLibrary nccl,
//                       DynamicLibrary::Open(kNccl, search));
//   FF_ASSIGN_OR_RETURN(auto* get_version,
//                       nccl.Find<decltype(ncclGetVersion)>("ncclGetVersion"));

#ifndef LIB_CUDA_DYNAMIC_LIBRARY_H_
#define LIB_CUDA_DYNAMIC_LIBRARY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace firstframe::cuda {

// A library and where it comes from. Views must outlive the specification;
// known_libraries.h has those that this project uses.
struct LibrarySpec {
  absl::string_view name;                     // in messages: "cuDNN 9"
  absl::Span<const absl::string_view> files;  // tried in order: "libx.so.9"
  absl::string_view apt;                      // package, may be empty
  absl::string_view pip;                      // package, may be empty
};

// Where to look when the loader's own path has nothing.
struct LibrarySearch {
  // Folders with a Python below them: PREFIX/lib/python3*/site-packages (or
  // dist-packages)/nvidia/*/lib is where pip's nvidia-* packages put libraries.
  std::vector<std::string> python_prefixes;
  std::vector<std::string> folders;  // tried before the toolkit's own
};

// Returns the search for a process whose VIRTUAL_ENV, CONDA_PREFIX and PATH
// have these values (empty when unset): the active environments first, then
// that of the first python3 on PATH, then /usr/local and /usr. Looks at the
// file system.
LibrarySearch MakeLibrarySearch(absl::string_view virtual_env,
                                absl::string_view conda_prefix,
                                absl::string_view path);

// Returns the paths at which Open would try `file` after the loader's own, in
// order; those that do not exist are left out.
std::vector<std::string> CandidatePaths(absl::string_view file,
                                        const LibrarySearch& search);

// Movable, thread-safe once open. Never closed: the libraries meant here keep
// threads and handlers that outlive any owner.
class DynamicLibrary {
 public:
  // Unavailable when nothing opens; the message has the files tried, the
  // loader's reason, and the packages that bring the library.
  static absl::StatusOr<DynamicLibrary> Open(const LibrarySpec& spec,
                                             const LibrarySearch& search = {});

  // Returns the function `name`. Unavailable when the library lacks it (it is
  // older than what this was written for).
  template <typename Function>
  absl::StatusOr<Function*> Find(const char* name) const {
    absl::StatusOr<void*> symbol = FindSymbol(name);
    if (!symbol.ok()) return symbol.status();
    return reinterpret_cast<Function*>(*symbol);
  }

  absl::StatusOr<void*> FindSymbol(const char* name) const;

  // Returns the file that was opened, as the loader resolved it.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(std::string path, void* handle)
      : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  void* handle_;
};

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_DYNAMIC_LIBRARY_H_
