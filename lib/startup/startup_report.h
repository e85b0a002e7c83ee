// What vae_startup found out, as plain data. Format:
// docs/formats/vae_startup.md.

#ifndef LIB_STARTUP_STARTUP_REPORT_H_
#define LIB_STARTUP_STARTUP_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json_writer.h"
#include "lib/host/machine.h"
#include "lib/host/process.h"
#include "lib/phase/phase_record.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// What holds for every run of one command.
struct StartupContext {
  std::vector<std::string> command;
  Machine machine;
  // Name and version of what was loaded or linked: {"oneDNN", "2.6.3"}.
  std::vector<std::pair<std::string, std::string>> runtime;
  std::string device;       // "cpu" or "cuda:0"
  std::string device_name;  // "NVIDIA H200"; the CPU's model
  Shape latent_shape;
  std::string latent_source;  // "seed 0", or a path
  int threads = 0;
  bool synchronize = false;
  std::string math;  // "fp32"
};

struct CheckpointFacts {
  std::string path;  // as resolved
  bool is_synthetic = false;
  std::vector<std::string> files;
  int64_t size_bytes = 0;  // of all files
  int64_t tensors = 0;
  int64_t parameters = 0;
  // SHA-256, in hex, over the configuration's text and each file's name, size
  // and header. It tells checkpoints of other shapes, types or layouts apart,
  // not ones that differ in values alone: those are read once, by the model.
  std::string fingerprint;
};

// The share of the checkpoint that was in the page cache, 0 to 1; empty when
// unknown, with the reason.
struct CacheFacts {
  std::string requested = "as_is";  // as_is, warm, cold
  std::optional<double> resident_before;
  std::optional<double> resident_after;
  std::string method;  // "cachestat", "mincore", "none"
  std::string unknown_reason;
};

struct RendezvousFacts {
  std::string source;  // "launcher" or "local"
  std::string address;
  int port = 0;
  int rank = 0;
  int world_size = 1;
  std::string
      transport;  // that joined the ranks: "nccl"; empty: none was asked
};

struct OutputFacts {
  Shape shape;
  bool is_finite = false;
  double min = 0;
  double max = 0;
  double mean = 0;
};

// The parameters to the host and back, and a decode (offload_cycles.h).
struct OffloadCycle {
  int64_t unload_ns = 0;
  int64_t load_ns = 0;  // until every byte is there
  int64_t decode_ns = 0;
};

struct OffloadFacts {
  std::vector<OffloadCycle> cycles;
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;  // once, for the host copy
  uint64_t d2h_avoided_bytes = 0;
  uint64_t host_pinned_bytes = 0;
  uint64_t host_pageable_bytes = 0;
  bool is_identical = true;  // every decode to the first one, bit for bit
  std::vector<std::string> degraded;
};

// One process, from exec to its report.
struct StartupSample {
  std::string error;  // empty: every phase was ok
  PhaseReport phases;
  int64_t process_wall_ns = 0;  // from exec to the report
  std::optional<ProcessStart> start;
  bool cuda_initialized_before_device_setup = false;
  CacheFacts cache;
  std::optional<RendezvousFacts> rendezvous;
  std::optional<OutputFacts> output;
  std::vector<int64_t> warm_decode_ns;
  std::optional<OffloadFacts> offload;  // when cycles were asked for
  int64_t parameter_bytes = 0;
  int64_t workspace_bytes = 0;
  // On a GPU only: device memory at its largest, and the last decode by the
  // device's own clock, from its first launch to its last.
  std::optional<int64_t> peak_device_bytes;
  std::optional<int64_t> last_decode_device_ns;
  ResourceUsage usage;
};

// Writes the value of "context", and the "facts" of one sample: all but its
// phases.
void WriteContextJson(const StartupContext& context,
                      const CheckpointFacts& checkpoint, JsonWriter& json);
void WriteFactsJson(const StartupSample& sample, JsonWriter& json);

}  // namespace firstframe

#endif  // LIB_STARTUP_STARTUP_REPORT_H_
