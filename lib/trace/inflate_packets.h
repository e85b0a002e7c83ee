// Unpacks a compressed packet of a Perfetto trace.

#ifndef LIB_TRACE_INFLATE_PACKETS_H_
#define LIB_TRACE_INFLATE_PACKETS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

// Unpacks a zlib stream; empty when it is damaged or too large.
std::string InflatePackets(absl::string_view packed);

}  // namespace firstframe

#endif  // LIB_TRACE_INFLATE_PACKETS_H_
