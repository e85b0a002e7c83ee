#include "lib/load/cufile_load.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/run_threads.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/known_libraries.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// Declared here rather than by cufile.h, which few toolkits have; as in cuFile
// 1.20 (read 2026-11), unchanged since 1.14, which brought the parameters.
struct CufileError {
  int error;
  int cuda_error;
};
using CufileHandle = void*;
struct CufileDescription {
  int type;  // 1: a file descriptor
  union {
    int fd;
    void* handle;
  };
  const void* operations;
};
constexpr int kHandleOfFd = 1;
constexpr int kParameterAllowCompatMode = 1;

// One read; the driver's own unit is 16 MiB.
constexpr uint64_t kReadBytes = 16 << 20;

struct Cufile {
  CufileError (*DriverOpen)() = nullptr;
  CufileError (*DriverClose)() = nullptr;
  CufileError (*SetParameterBool)(int, bool) = nullptr;
  CufileError (*HandleRegister)(CufileHandle*, CufileDescription*) = nullptr;
  void (*HandleDeregister)(CufileHandle) = nullptr;
  ssize_t (*Read)(CufileHandle, void*, size_t, off_t, off_t) = nullptr;
};

absl::StatusOr<Cufile> LoadLibrary(const cuda::LibrarySearch& search) {
  FF_ASSIGN_OR_RETURN(const cuda::DynamicLibrary library,
                      cuda::DynamicLibrary::Open(cuda::kCufile, search));
  Cufile cufile;
  absl::Status status;
  const auto find = [&](const char* name, auto* out) {
    absl::StatusOr<void*> symbol = library.FindSymbol(name);
    if (symbol.ok()) {
      *out = reinterpret_cast<std::remove_pointer_t<decltype(out)>>(*symbol);
    } else if (status.ok()) {
      status = symbol.status();
    }
  };
  find("cuFileDriverOpen", &cufile.DriverOpen);
  find("cuFileDriverClose_v2", &cufile.DriverClose);
  find("cuFileSetParameterBool", &cufile.SetParameterBool);
  find("cuFileHandleRegister", &cufile.HandleRegister);
  find("cuFileHandleDeregister", &cufile.HandleDeregister);
  find("cuFileRead", &cufile.Read);
  FF_RETURN_IF_ERROR(status);
  return cufile;
}

absl::Status ToStatus(CufileError error, absl::string_view call) {
  if (error.error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      call, ": cuFile error ", error.error, ", CUDA error ", error.cuda_error));
}

// The driver, open in one of its modes, with the files' handles.
class Session {
 public:
  static absl::StatusOr<Session> Open(const Cufile& cufile,
                                      const OpenedSources& sources,
                                      bool allow_compat) {
    FF_RETURN_IF_ERROR(ToStatus(
        cufile.SetParameterBool(kParameterAllowCompatMode, allow_compat),
        "cuFileSetParameterBool"));
    FF_RETURN_IF_ERROR(ToStatus(cufile.DriverOpen(), "cuFileDriverOpen"));
    Session session(cufile);
    for (const OpenedFile& file : sources.files) {
      CufileDescription description = {};
      description.type = kHandleOfFd;
      description.fd =
          file.direct ? file.direct->file.fd() : file.buffered.fd();
      CufileHandle handle = nullptr;
      const CufileError error = cufile.HandleRegister(&handle, &description);
      FF_RETURN_IF_ERROR(Annotate(ToStatus(error, "cuFileHandleRegister"),
                                  file.buffered.path()));
      session.handles_.push_back(handle);
    }
    return session;
  }

  Session(Session&& other) noexcept
      : cufile_(other.cufile_),
        is_open_(std::exchange(other.is_open_, false)),
        handles_(std::move(other.handles_)) {}
  Session& operator=(Session&&) = delete;
  ~Session() {
    if (!is_open_) return;
    for (const CufileHandle handle : handles_) cufile_.HandleDeregister(handle);
    cufile_.DriverClose();
  }

  CufileHandle handle(uint32_t file) const { return handles_[file]; }

 private:
  explicit Session(const Cufile& cufile) : cufile_(cufile), is_open_(true) {}

  const Cufile cufile_;
  bool is_open_;
  std::vector<CufileHandle> handles_;
};

absl::Status ReadPart(const Cufile& cufile, const Session& session,
                      const PlannedTensor& tensor, uint64_t at, uint64_t size,
                      const std::string& path, std::byte* arena) {
  while (size > 0) {
    const ssize_t n =
        cufile.Read(session.handle(tensor.source.file), arena, size,
                    static_cast<off_t>(tensor.source.file_offset + at),
                    static_cast<off_t>(tensor.arena_offset + at));
    if (n <= 0) {
      // -1 has errno; other negative values are cuFile's codes.
      return absl::DataLossError(absl::StrCat(
          path, ": cuFileRead at byte ", tensor.source.file_offset + at, ": ",
          n == 0    ? "the end of the file"
          : n == -1 ? ::strerror(errno)
                    : absl::StrCat("cuFile error ", -n).c_str()));
    }
    at += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status ReadAll(const LoadPlan& plan, const Cufile& cufile,
                     const Session& session, std::byte* arena,
                     cuda::Runtime& runtime, int device, int threads) {
  struct Part {
    uint32_t tensor;
    uint64_t at;
    uint64_t size;
  };
  std::vector<Part> parts;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const uint64_t size = plan.tensors[i].source.size_bytes;
    for (uint64_t at = 0; at < size; at += kReadBytes) {
      parts.push_back(
          {static_cast<uint32_t>(i), at, std::min(kReadBytes, size - at)});
    }
  }
  std::atomic<size_t> next = 0;
  std::vector<absl::Status> statuses(std::max(threads, 1));
  RunOnThreads(static_cast<int>(statuses.size()), [&](int t) {
    absl::Status& status = statuses[t];
    status = runtime.SetDevice(device);
    while (status.ok()) {
      const size_t i = next.fetch_add(1);
      if (i >= parts.size()) return;
      const PlannedTensor& tensor = plan.tensors[parts[i].tensor];
      status = ReadPart(cufile, session, tensor, parts[i].at, parts[i].size,
                        plan.paths[tensor.source.file], arena);
    }
    next.store(parts.size());  // the others need not go on
  });
  for (const absl::Status& status : statuses) FF_RETURN_IF_ERROR(status);
  return runtime.SynchronizeDevice();
}

}  // namespace

absl::StatusOr<CufileReport> LoadWithCufile(const LoadPlan& plan,
                                            const OpenedSources& sources,
                                            std::byte* arena,
                                            cuda::Runtime& runtime, int device,
                                            int threads,
                                            const cuda::LibrarySearch& search) {
  const Clock& clock = MonotonicClock::Get();
  const int64_t start = clock.NowNs();
  FF_ASSIGN_OR_RETURN(const Cufile cufile, LoadLibrary(search));
  FF_RETURN_IF_ERROR(runtime.SetDevice(device));
  CufileReport report;
  absl::StatusOr<Session> session =
      Session::Open(cufile, sources, /*allow_compat=*/false);
  report.is_direct = session.ok();
  if (!report.is_direct) {
    report.why_compat = std::string(session.status().message());
    absl::StatusOr<Session> compat =
        Session::Open(cufile, sources, /*allow_compat=*/true);
    if (!compat.ok()) {
      return absl::UnavailableError(absl::StrCat(
          "cuFile works neither directly (", report.why_compat,
          ") nor in its compat mode (", compat.status().message(), ")"));
    }
    report.setup_ns = clock.NowNs() - start;
    FF_RETURN_IF_ERROR(
        ReadAll(plan, cufile, *compat, arena, runtime, device, threads));
  } else {
    report.setup_ns = clock.NowNs() - start;
    FF_RETURN_IF_ERROR(
        ReadAll(plan, cufile, *session, arena, runtime, device, threads));
  }
  report.read_ns = clock.NowNs() - start - report.setup_ns;
  FF_RETURN_IF_ERROR(sources.CheckUnchanged());
  return report;
}

}  // namespace firstframe
