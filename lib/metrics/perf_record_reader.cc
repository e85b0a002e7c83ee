#include "lib/metrics/perf_record_reader.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/metrics/json_scanner.h"

namespace firstframe {
namespace {

// Equality with a literal, of a size that the compiler knows.
template <size_t kSize>
bool Is(absl::string_view key, const char (&name)[kSize]) {
  return key.size() == kSize - 1 &&
         std::memcmp(key.data(), name, kSize - 1) == 0;
}

void Read(JsonScanner& scan, double& out) { scan.ReadDouble(out); }
void Read(JsonScanner& scan, std::optional<double>& out) {
  scan.ReadDouble(out);
}
void Read(JsonScanner& scan, int64_t& out) { scan.ReadInt(out); }
void Read(JsonScanner& scan, bool& out) { scan.ReadBool(out); }
void Read(JsonScanner& scan, std::string& out) { scan.ReadString(out); }

// Any other value, a string or not, is a record of another kind.
PerfRecordKind ReadKind(JsonScanner& scan) {
  if (!scan.NextIsString()) {
    scan.SkipValue();
    return PerfRecordKind::kOther;
  }
  const absl::string_view kind = scan.ReadRawString();
  if (kind == "request") return PerfRecordKind::kRequest;
  if (kind == "train_window") return PerfRecordKind::kTrainWindow;
  return PerfRecordKind::kOther;
}

PerfRecordKind FindKind(absl::string_view line) {
  JsonScanner scan(line);
  for (auto fields = scan.EnterObject(); scan.NextField(fields);) {
    if (fields.key == "kind") return ReadKind(scan);
    scan.SkipValue();
  }
  return PerfRecordKind::kOther;
}

}  // namespace

// READ(field) reads the key of that name into `target.field`.
#define FF_READ(target, field)  \
  if (Is(key, #field)) {        \
    Read(scan, (target).field); \
    return;                     \
  }

struct PerfRecordParser::State {
  void Stages(JsonScanner& scan);
  void Phases(JsonScanner& scan);
  void RequestField(absl::string_view key, JsonScanner& scan);
  void WindowField(absl::string_view key, JsonScanner& scan);
  void Reset(PerfRecordKind kind);

  RequestRecord request;
  TrainWindowRecord window;
  size_t num_stages = 0;
  size_t num_phases = 0;
};

// Assigning a fresh record would give the vectors' memory back.
void PerfRecordParser::State::Reset(PerfRecordKind kind) {
  if (kind == PerfRecordKind::kRequest) {
    auto stages = std::move(request.stages);
    request = RequestRecord();
    request.stages = std::move(stages);
    num_stages = 0;
  } else if (kind == PerfRecordKind::kTrainWindow) {
    auto phases = std::move(window.phases_s);
    window = TrainWindowRecord();
    window.phases_s = std::move(phases);
    num_phases = 0;
  }
}

namespace {

void StageField(absl::string_view key, JsonScanner& scan, StageSummary& stage) {
  FF_READ(stage, count);
  FF_READ(stage, total_ms);
  FF_READ(stage, mean_ms);
  FF_READ(stage, std_ms);
  FF_READ(stage, min_ms);
  FF_READ(stage, max_ms);
  scan.SkipValue();
}

void DitField(absl::string_view key, JsonScanner& scan, DitThroughput& dit) {
  FF_READ(dit, params);
  FF_READ(dit, tokens);
  FF_READ(dit, batch);
  FF_READ(dit, devices);
  FF_READ(dit, flops_per_fwd);
  FF_READ(dit, attn_share);
  FF_READ(dit, tflops);
  FF_READ(dit, peak_tflops);
  FF_READ(dit, mfu);
  scan.SkipValue();
}

void VaeField(absl::string_view key, JsonScanner& scan, VaeThroughput& vae) {
  FF_READ(vae, flops_per_call);
  FF_READ(vae, calls);
  FF_READ(vae, tflops);
  FF_READ(vae, peak_tflops);
  FF_READ(vae, mfu);
  scan.SkipValue();
}

void PricedField(absl::string_view key, JsonScanner& scan,
                 WindowThroughput::Priced& priced) {
  FF_READ(priced, params);
  FF_READ(priced, trainable);
  FF_READ(priced, tokens);
  FF_READ(priced, priced_steps);
  FF_READ(priced, priced_s);
  FF_READ(priced, flops_coef);
  FF_READ(priced, flops_coef_hw);
  FF_READ(priced, flops_coef_reason);
  FF_READ(priced, flops_per_step);
  FF_READ(priced, attn_share);
  FF_READ(priced, devices);
  FF_READ(priced, tflops);
  FF_READ(priced, hw_tflops);
  FF_READ(priced, peak_tflops);
  FF_READ(priced, mfu);
  FF_READ(priced, hfu);
  scan.SkipValue();
}

void ThroughputField(absl::string_view key, JsonScanner& scan,
                     WindowThroughput& throughput) {
  FF_READ(throughput, samples_per_s);
  FF_READ(throughput, samples);
  FF_READ(throughput, wall_s);
  FF_READ(throughput, dp);
  if (!throughput.priced) throughput.priced.emplace();
  PricedField(key, scan, *throughput.priced);
}

// Reads an object into `out`; null leaves it empty.
template <typename T, typename Field>
void ReadObject(JsonScanner& scan, std::optional<T>& out, const Field& field) {
  auto fields = scan.EnterObject();
  if (!fields.is_object) return;
  out.emplace();
  while (scan.NextField(fields)) field(fields.key, scan, *out);
}

bool ReadPeaks(absl::string_view key, JsonScanner& scan,
               std::optional<MemoryPeaks>& peaks) {
  const bool is_alloc = key == "peak_alloc_bytes";
  if (!is_alloc && key != "peak_reserved_bytes") return false;
  if (!peaks) peaks.emplace();
  Read(scan, is_alloc ? peaks->alloc_bytes : peaks->reserved_bytes);
  return true;
}

}  // namespace

void PerfRecordParser::State::Stages(JsonScanner& scan) {
  for (auto stages = scan.EnterObject(); scan.NextField(stages);) {
    if (num_stages == request.stages.size()) request.stages.emplace_back();
    auto& [name, summary] = request.stages[num_stages++];
    name.assign(stages.key.data(), stages.key.size());
    summary = StageSummary();
    for (auto fields = scan.EnterObject(); scan.NextField(fields);) {
      StageField(fields.key, scan, summary);
    }
  }
}

void PerfRecordParser::State::Phases(JsonScanner& scan) {
  for (auto phases = scan.EnterObject(); scan.NextField(phases);) {
    if (num_phases == window.phases_s.size()) window.phases_s.emplace_back();
    auto& [name, seconds] = window.phases_s[num_phases++];
    name.assign(phases.key.data(), phases.key.size());
    seconds = 0;
    scan.ReadDouble(seconds);
  }
}

void PerfRecordParser::State::RequestField(absl::string_view key,
                                           JsonScanner& scan) {
  FF_READ(request, ts);
  FF_READ(request, rank);
  FF_READ(request, world_size);
  FF_READ(request, req);
  FF_READ(request, warmup);
  FF_READ(request, e2e_s);
  if (key == "stages") return Stages(scan);
  if (key == "dit") return ReadObject(scan, request.dit, DitField);
  if (key == "vae") return ReadObject(scan, request.vae, VaeField);
  FF_READ(request, device);
  if (ReadPeaks(key, scan, request.peaks)) return;
  scan.SkipValue();
}

void PerfRecordParser::State::WindowField(absl::string_view key,
                                          JsonScanner& scan) {
  FF_READ(window, ts);
  FF_READ(window, rank);
  FF_READ(window, world_size);
  FF_READ(window, step_first);
  FF_READ(window, step_last);
  FF_READ(window, steps);
  FF_READ(window, warmup_excluded);
  FF_READ(window, step_s_p50);
  FF_READ(window, step_s_p95);
  if (key == "phases_s") return Phases(scan);
  FF_READ(window, micro_steps);
  FF_READ(window, overrun_s);
  FF_READ(window, device);
  if (ReadPeaks(key, scan, window.peaks)) return;
  if (key == "throughput") {
    return ReadObject(scan, window.throughput, ThroughputField);
  }
  FF_READ(window, eta_s);
  scan.SkipValue();
}

#undef FF_READ

PerfRecordParser::PerfRecordParser() : state_(std::make_unique<State>()) {}
PerfRecordParser::~PerfRecordParser() = default;

absl::StatusOr<PerfRecordKind> PerfRecordParser::Parse(absl::string_view line) {
  State& s = *state_;
  std::optional<PerfRecordKind> kind;
  JsonScanner scan(line);
  auto fields = scan.EnterObject();
  if (scan.ok() && !fields.is_object) {
    return absl::InvalidArgumentError("expected an object");
  }
  while (scan.NextField(fields)) {
    if (!kind) {
      // Both programs write it first; whoever does not pays for a search.
      kind = FindKind(line);
      s.Reset(*kind);
    }
    if (*kind == PerfRecordKind::kRequest) {
      s.RequestField(fields.key, scan);
    } else if (*kind == PerfRecordKind::kTrainWindow) {
      s.WindowField(fields.key, scan);
    } else {
      scan.SkipValue();
    }
  }
  scan.ExpectEnd();
  if (!scan.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte ", scan.position(), ": ", scan.error()));
  }
  if (kind == PerfRecordKind::kRequest) s.request.stages.resize(s.num_stages);
  if (kind == PerfRecordKind::kTrainWindow) {
    s.window.phases_s.resize(s.num_phases);
  }
  return kind.value_or(PerfRecordKind::kOther);
}

const RequestRecord& PerfRecordParser::request() const {
  return state_->request;
}

const TrainWindowRecord& PerfRecordParser::train_window() const {
  return state_->window;
}

}  // namespace firstframe
