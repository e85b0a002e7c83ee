#include "lib/cuda/dynamic_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace firstframe::cuda {
namespace {

// Where a toolkit from NVIDIA's installers or Debian's packages has libraries.
constexpr absl::string_view kToolkitFolders[] = {
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/targets/x86_64-linux/lib",
    "/usr/local/cuda/targets/sbsa-linux/lib",
    "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
};

bool IsReadable(const std::string& path) {
  return access(path.c_str(), R_OK) == 0;
}

void AppendMatches(const std::string& pattern, std::vector<std::string>* out) {
  glob_t matches = {};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    out->insert(out->end(), matches.gl_pathv,
                matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
}

std::string LoadedPath(void* handle, const std::string& otherwise) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr ||
      map->l_name == nullptr || map->l_name[0] == '\0') {
    return otherwise;
  }
  return map->l_name;
}

std::string PackagesOf(const LibrarySpec& spec) {
  std::vector<std::string> packages;
  if (!spec.apt.empty()) {
    packages.push_back(absl::StrCat("apt-get install ", spec.apt));
  }
  if (!spec.pip.empty()) {
    packages.push_back(absl::StrCat("pip install ", spec.pip));
  }
  return absl::StrJoin(packages, ", or ");
}

}  // namespace

LibrarySearch MakeLibrarySearch(absl::string_view virtual_env,
                                absl::string_view conda_prefix,
                                absl::string_view path) {
  LibrarySearch search;
  const auto add = [&search](std::string prefix) {
    std::vector<std::string>& prefixes = search.python_prefixes;
    if (prefix.empty() ||
        std::find(prefixes.begin(), prefixes.end(), prefix) != prefixes.end()) {
      return;
    }
    prefixes.push_back(std::move(prefix));
  };
  add(std::string(virtual_env));
  add(std::string(conda_prefix));
  for (absl::string_view folder : absl::StrSplit(path, ':')) {
    if (!absl::EndsWith(folder, "/bin")) continue;
    const std::string prefix(folder.substr(0, folder.size() - 4));
    if (access(absl::StrCat(folder, "/python3").c_str(), X_OK) == 0) {
      add(prefix);
      break;
    }
  }
  add("/usr/local");
  add("/usr");
  return search;
}

std::vector<std::string> CandidatePaths(absl::string_view file,
                                        const LibrarySearch& search) {
  std::vector<std::string> paths;
  const auto add = [&](absl::string_view folder) {
    std::string path = absl::StrCat(folder, "/", file);
    if (IsReadable(path)) paths.push_back(std::move(path));
  };
  for (const std::string& folder : search.folders) add(folder);
  for (const std::string& prefix : search.python_prefixes) {
    for (const absl::string_view packages :
         {"site-packages", "dist-packages"}) {
      AppendMatches(absl::StrCat(prefix, "/lib/python3*/", packages,
                                 "/nvidia/*/lib/", file),
                    &paths);
    }
  }
  for (const absl::string_view folder : kToolkitFolders) add(folder);
  return paths;
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(
    const LibrarySpec& spec, const LibrarySearch& search) {
  std::string reason;
  const auto try_open = [&reason](const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) reason = dlerror();
    return handle;
  };
  for (const absl::string_view file : spec.files) {
    const std::string name(file);
    if (void* handle = try_open(name)) {
      return DynamicLibrary(LoadedPath(handle, name), handle);
    }
    for (const std::string& path : CandidatePaths(file, search)) {
      if (void* handle = try_open(path)) {
        return DynamicLibrary(LoadedPath(handle, path), handle);
      }
    }
  }
  std::string message = absl::StrCat(
      spec.name, ": tried ", absl::StrJoin(spec.files, ", "), ": ", reason);
  const std::string packages = PackagesOf(spec);
  if (!packages.empty()) absl::StrAppend(&message, "; ", packages);
  return absl::UnavailableError(message);
}

absl::StatusOr<void*> DynamicLibrary::FindSymbol(const char* name) const {
  dlerror();
  void* symbol = dlsym(handle_, name);
  if (symbol != nullptr) return symbol;
  const char* reason = dlerror();
  return absl::UnavailableError(
      absl::StrCat(path_, ": no function '", name,
                   "': ", reason == nullptr ? "null address" : reason));
}

}  // namespace firstframe::cuda
