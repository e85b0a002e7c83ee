#include "lib/trace/inflate_packets.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

namespace firstframe {
namespace {

// A packet that unpacks to more than this is not one a writer made.
constexpr size_t kMaxUnpackedBytes = 64 << 20;

}  // namespace

std::string InflatePackets(absl::string_view packed) {
  std::string out;
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) return out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int code = Z_OK;
  while (code == Z_OK && out.size() < kMaxUnpackedBytes) {
    const size_t before = out.size();
    out.resize(before + std::max<size_t>(packed.size() * 4, 1 << 16));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream.avail_out = static_cast<uInt>(out.size() - before);
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) break;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END) out.clear();
  return out;
}

}  // namespace firstframe
