#include "lib/startup/default_checkpoint.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/synthetic_checkpoint.h"

namespace firstframe {

std::string CachedCheckpointFolder(absl::string_view name,
                                   const char* cache_home, const char* home) {
  std::string root = "/tmp";
  if (cache_home != nullptr && cache_home[0] == '/') {
    root = cache_home;
  } else if (home != nullptr && home[0] == '/') {
    root = absl::StrCat(home, "/.cache");
  }
  return absl::StrCat(root, "/firstframe/", name);
}

absl::StatusOr<bool> EnsureSyntheticVae(const std::string& folder,
                                        absl::string_view preset) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(fs::path(folder) / "config.json", error)) return false;
  FF_ASSIGN_OR_RETURN(const WanVaeConfig config, WanVaePreset(preset));
  // A folder of our own takes its name at the end, so that nobody sees half.
  const std::string temporary = absl::StrCat(folder, ".tmp.", ::getpid());
  absl::Cleanup remove = [&] { fs::remove_all(temporary, error); };
  FF_RETURN_IF_ERROR(
      WriteSyntheticVae(temporary, config, /*original_names=*/false, {})
          .status());
  fs::rename(temporary, folder, error);
  if (error && !fs::exists(fs::path(folder) / "config.json")) {
    return absl::UnknownError(absl::StrCat("cannot make ", folder, ": ",
                                           error.message(),
                                           "; give a checkpoint instead"));
  }
  return true;
}

}  // namespace firstframe
