#include "lib/dist/open_mpi.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

absl::StatusOr<OpenMpi> LoadOnce() {
  void* library = nullptr;
  // Open MPI's plugins look for the library's symbols, hence RTLD_GLOBAL.
  for (const char* name : {"libmpi.so.40", "libmpi.so"}) {
    library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "Open MPI was not found (package libopenmpi3): ", ::dlerror()));
  }
  OpenMpi mpi;
  std::string missing;
  const auto find = [&](const char* name, auto* out) {
    void* symbol = ::dlsym(library, name);
    if (symbol == nullptr && missing.empty()) missing = name;
    *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(symbol);
  };
  find("ompi_mpi_comm_world", &mpi.world);
  find("ompi_mpi_byte", &mpi.byte);
  find("ompi_mpi_errors_return", &mpi.errors_return);
  find("MPI_Initialized", &mpi.Initialized);
  find("MPI_Init", &mpi.Init);
  find("MPI_Finalize", &mpi.Finalize);
  find("MPI_Comm_rank", &mpi.Comm_rank);
  find("MPI_Comm_size", &mpi.Comm_size);
  find("MPI_Comm_dup", &mpi.Comm_dup);
  find("MPI_Comm_set_errhandler", &mpi.Comm_set_errhandler);
  find("MPI_Ibcast", &mpi.Ibcast);
  find("MPI_Iallgather", &mpi.Iallgather);
  find("MPI_Isend", &mpi.Isend);
  find("MPI_Irecv", &mpi.Irecv);
  find("MPI_Test", &mpi.Test);
  find("MPI_Cancel", &mpi.Cancel);
  find("MPI_Error_string", &mpi.Error_string);
  find("MPI_Get_library_version", &mpi.Get_library_version);
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "the libmpi found here is not Open MPI's: it has no ", missing));
  }
  return mpi;
}

}  // namespace

absl::StatusOr<const OpenMpi*> OpenMpi::Load() {
  static const absl::StatusOr<OpenMpi>* const loaded =
      new absl::StatusOr<OpenMpi>(LoadOnce());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

absl::Status OpenMpi::ToStatus(int code, const char* call) const {
  if (code == 0) return absl::OkStatus();
  char text[kOmpiMaxErrorString] = "";
  int size = 0;
  if (Error_string(code, text, &size) != 0) size = 0;
  return absl::InternalError(absl::StrCat(call, ": error ", code, ": ",
                                          absl::string_view(text, size)));
}

}  // namespace firstframe
