// Whether O_DIRECT really works on a file, and with which alignment.

#ifndef LIB_LOAD_DIRECT_IO_H_
#define LIB_LOAD_DIRECT_IO_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/load/data_file.h"

namespace firstframe {

// A reader that bypasses the page cache. Offsets and sizes must be multiples of
// `offset_alignment`, addresses of `memory_alignment`; the last read of a file
// may ask beyond its end, and then gets less.
struct DirectFile {
  DataFile file;
  uint32_t offset_alignment = 4096;
  uint32_t memory_alignment = 4096;
};

// Opens `path` with O_DIRECT and makes one real aligned read: some file systems
// accept the flag and refuse or emulate the read. Unavailable, with the reason,
// when the file cannot be read directly; codes from errno when it cannot be
// opened at all.
absl::StatusOr<DirectFile> OpenDirect(const std::string& path);

}  // namespace firstframe

#endif  // LIB_LOAD_DIRECT_IO_H_
