// What this binary was built from.

#ifndef LIB_BASE_VERSION_H_
#define LIB_BASE_VERSION_H_

#include <string>

namespace firstframe {

struct BuildInfo {
  std::string version;  // of the project, "0.1.0"
  std::string commit;   // "0123456789ab", with "-dirty" for a changed tree,
                        // or "unknown" outside git
  std::string cuda_toolkit;  // compiled against, "13.0", or "none"
};

// Thread-safe. Only binaries under tools/ are stamped; elsewhere the commit is
// "unknown".
BuildInfo GetBuildInfo();

}  // namespace firstframe

#endif  // LIB_BASE_VERSION_H_
