// A folder that lives as long as the object.

#ifndef LIB_TESTING_TEMP_DIR_H_
#define LIB_TESTING_TEMP_DIR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace firstframe::testing {

// Created under TEST_TMPDIR (else /tmp), removed with all it holds.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  // Returns the path of `name` inside; creates nothing.
  std::string File(absl::string_view name) const;

  // Writes `contents` to `name` inside (folders in `name` are made) and returns
  // its path. Stops the test process when it cannot.
  std::string Write(absl::string_view name, absl::string_view contents) const;

 private:
  std::string path_;
};

// Returns the whole of `path`; stops the test process when it cannot.
std::string ReadFile(const std::string& path);

}  // namespace firstframe::testing

#endif  // LIB_TESTING_TEMP_DIR_H_
