#include "lib/testing/temp_dir.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace firstframe::testing {
namespace {

[[noreturn]] void Die(absl::string_view what, const std::string& path) {
  std::fprintf(stderr, "%s: %s\n", std::string(what).c_str(), path.c_str());
  std::abort();
}

}  // namespace

TempDir::TempDir() {
  const char* root = std::getenv("TEST_TMPDIR");
  path_ = absl::StrCat(root != nullptr ? root : "/tmp", "/ff.XXXXXX");
  if (::mkdtemp(path_.data()) == nullptr) Die("cannot create", path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::File(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

std::string TempDir::Write(absl::string_view name,
                           absl::string_view contents) const {
  const std::string path = File(name);
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(contents.data(), contents.size());
  if (!file.flush()) Die("cannot write", path);
  return path;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Die("cannot read", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace firstframe::testing
