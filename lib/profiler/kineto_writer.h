// Writes the events of a session's stream as Kineto would have.

#ifndef LIB_PROFILER_KINETO_WRITER_H_
#define LIB_PROFILER_KINETO_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace firstframe {

struct KinetoHeader {
  std::string device_properties = "[]";  // JSON
  int64_t rank = 0;
  int64_t world_size = 1;
  std::string host_name;
  std::string process_name;
  // Regions of which each entry is a step: short names and patterns, separated
  // by commas. Each gets a span "ProfilerStep#N" around it, which HTA and the
  // TensorBoard plugin count by, unless the program marks steps of its own.
  std::string steps = "training_step,training_train_one_step";
};

// Copies the Perfetto trace at `stream_path` to `path` (".gz": packed) in
// Kineto's JSON: what Perfetto, HolisticTraceAnalysis and the TensorBoard
// plugin each need is there (docs/formats/profile.md). Streams but for some 200
// bytes an entry into a region.
absl::Status WriteKinetoTrace(const std::string& stream_path,
                              const KinetoHeader& header,
                              const std::string& path);

}  // namespace firstframe

#endif  // LIB_PROFILER_KINETO_WRITER_H_
