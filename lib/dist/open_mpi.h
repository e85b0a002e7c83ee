// The few functions of Open MPI that a transport needs, found at run time.
//
// A binary that linked libmpi would not start where it is absent, so it is
// opened when ranks that mpirun started first need it. MPI has no common binary
// interface before version 5 of the standard: this declares Open MPI's, in
// which handles are pointers to objects that the library exports. Source: mpi.h
// of Open MPI 4.1.4, read 2026-11; the same names hold in 3.x to 5.x.

#ifndef LIB_DIST_OPEN_MPI_H_
#define LIB_DIST_OPEN_MPI_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace firstframe {

// Opaque objects of the library.
struct OmpiCommunicator;
struct OmpiDatatype;
struct OmpiRequest;
struct OmpiErrhandler;

// Thread-safe once loaded; MPI itself is used from one thread.
struct OpenMpi {
  // Opens the library, once per process; the same answer afterwards.
  // Unavailable, with the package to install, when there is none.
  static absl::StatusOr<const OpenMpi*> Load();

  // Turns a return code into a status with the library's own text.
  absl::Status ToStatus(int code, const char* call) const;

  OmpiCommunicator* world = nullptr;
  OmpiDatatype* byte = nullptr;
  OmpiErrhandler* errors_return = nullptr;

  int (*Initialized)(int*) = nullptr;
  int (*Init)(int*, char***) = nullptr;
  int (*Finalize)() = nullptr;
  int (*Comm_rank)(OmpiCommunicator*, int*) = nullptr;
  int (*Comm_size)(OmpiCommunicator*, int*) = nullptr;
  int (*Comm_dup)(OmpiCommunicator*, OmpiCommunicator**) = nullptr;
  int (*Comm_set_errhandler)(OmpiCommunicator*, OmpiErrhandler*) = nullptr;
  int (*Ibcast)(void*, int, OmpiDatatype*, int, OmpiCommunicator*,
                OmpiRequest**) = nullptr;
  int (*Iallgather)(const void*, int, OmpiDatatype*, void*, int, OmpiDatatype*,
                    OmpiCommunicator*, OmpiRequest**) = nullptr;
  int (*Isend)(const void*, int, OmpiDatatype*, int, int, OmpiCommunicator*,
               OmpiRequest**) = nullptr;
  int (*Irecv)(void*, int, OmpiDatatype*, int, int, OmpiCommunicator*,
               OmpiRequest**) = nullptr;
  // The last argument is MPI_STATUS_IGNORE, a null pointer here.
  int (*Test)(OmpiRequest**, int*, void*) = nullptr;
  int (*Cancel)(OmpiRequest**) = nullptr;
  int (*Error_string)(int, char*, int*) = nullptr;
  int (*Get_library_version)(char*, int*) = nullptr;
};

// Open MPI's values of these constants.
inline constexpr int kOmpiAnySource = -1;
inline constexpr int kOmpiMaxErrorString = 256;
inline constexpr int kOmpiMaxLibraryVersionString = 256;

}  // namespace firstframe

#endif  // LIB_DIST_OPEN_MPI_H_
