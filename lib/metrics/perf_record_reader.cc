#include "lib/metrics/perf_record_reader.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/metrics/json_scanner.h"
#include "lib/metrics/perf_record_fields.h"

namespace firstframe {
namespace {

using perf_record_internal::Is;
using perf_record_internal::ReadExpected;
using perf_record_internal::ReadField;

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

// The kind of a line that begins with it; the scanner is then behind it.
std::optional<PerfRecordKind> GuessKind(JsonScanner& scan) {
  if (!FF_CONSUME(scan, FIRST, kind) || !scan.NextIsString()) {
    return std::nullopt;
  }
  const PerfRecordKind kind = ReadKind(scan);
  if (kind == PerfRecordKind::kOther) return std::nullopt;
  return kind;
}

PerfRecordKind FindKind(absl::string_view line) {
  JsonScanner scan(line);
  for (auto fields = scan.EnterObject(); scan.NextField(fields);) {
    if (fields.key == "kind") return ReadKind(scan);
    scan.SkipValue();
  }
  return PerfRecordKind::kOther;
}

// The fields of an object behind those that ReadExpected took.
JsonScanner::Fields FieldsAfter(bool has_begun, JsonScanner& scan) {
  if (!has_begun) return scan.EnterObject();
  JsonScanner::Fields fields;
  fields.is_object = true;
  fields.is_first = false;
  return fields;
}

// Reads an object without objects in it; returns false when it is null.
template <typename T>
bool ReadFlatObject(JsonScanner& scan, T& target) {
  auto fields = FieldsAfter(ReadExpected(scan, target), scan);
  while (scan.NextField(fields)) {
    if (!ReadField(fields.key, scan, target)) scan.SkipValue();
  }
  return fields.is_object;
}

// The same; null leaves it empty.
template <typename T>
void ReadOptionalObject(JsonScanner& scan, std::optional<T>& out) {
  if (!ReadFlatObject(scan, out.emplace())) out.reset();
}

void ReadThroughput(JsonScanner& scan, std::optional<WindowThroughput>& out) {
  WindowThroughput& throughput = out.emplace();
  auto fields = FieldsAfter(ReadExpected(scan, throughput), scan);
  if (!fields.is_object) return out.reset();
  PricedThroughput priced;
  bool is_priced = !fields.is_first && ReadExpected(scan, priced);
  while (scan.NextField(fields)) {
    if (ReadField(fields.key, scan, throughput)) continue;
    is_priced = true;
    if (!ReadField(fields.key, scan, priced)) scan.SkipValue();
  }
  if (is_priced) throughput.priced = std::move(priced);
}

void ReadPeak(JsonScanner& scan, std::optional<MemoryPeaks>& peaks,
              int64_t MemoryPeaks::*field) {
  if (!peaks) peaks.emplace();
  scan.ReadInt((*peaks).*field);
}

// What both kinds of records end with.
template <typename Record>
bool ReadDeviceField(absl::string_view key, JsonScanner& scan, Record& record) {
  if (Is(key, "device")) {
    scan.ReadString(record.device);
  } else if (Is(key, "peak_alloc_bytes")) {
    ReadPeak(scan, record.peaks, &MemoryPeaks::alloc_bytes);
  } else if (Is(key, "peak_reserved_bytes")) {
    ReadPeak(scan, record.peaks, &MemoryPeaks::reserved_bytes);
  } else {
    return false;
  }
  return true;
}

template <typename Record>
void ReadExpectedDevice(JsonScanner& scan, Record& record) {
  if (!FF_CONSUME(scan, NEXT, device)) return;
  scan.ReadString(record.device);
  if (!FF_CONSUME(scan, NEXT, peak_alloc_bytes)) return;
  ReadPeak(scan, record.peaks, &MemoryPeaks::alloc_bytes);
  if (!FF_CONSUME(scan, NEXT, peak_reserved_bytes)) return;
  ReadPeak(scan, record.peaks, &MemoryPeaks::reserved_bytes);
}

// Reads the fields of an object of named values into `entries`, which holds
// `count` of them; behind those stand the last record's, whose names are the
// guess for what comes.
template <typename T, typename ReadValue>
void ReadNamed(JsonScanner& scan,
               std::vector<std::pair<std::string, T>>& entries, size_t& count,
               const ReadValue& read) {
  auto fields = scan.EnterObject();
  while (true) {
    const bool is_known = count < entries.size() &&
                          scan.NextFieldIs(fields, entries[count].first);
    if (!is_known) {
      if (!scan.NextField(fields)) return;
      if (count == entries.size()) entries.emplace_back();
      entries[count].first.assign(fields.key.data(), fields.key.size());
    }
    T& value = entries[count++].second;
    value = T();
    read(value);
  }
}

}  // namespace

struct PerfRecordParser::State {
  void ReadStages(JsonScanner& scan) {
    ReadNamed(scan, request.stages, num_stages,
              [&scan](StageSummary& stage) { ReadFlatObject(scan, stage); });
  }
  void ReadPhases(JsonScanner& scan) {
    ReadNamed(scan, window.phases_s, num_phases,
              [&scan](double& seconds) { scan.ReadDouble(seconds); });
  }
  void ReadRequest(JsonScanner& scan, JsonScanner::Fields& fields);
  void ReadWindow(JsonScanner& scan, JsonScanner::Fields& fields);
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

void PerfRecordParser::State::ReadRequest(JsonScanner& scan,
                                          JsonScanner::Fields& fields) {
  if (!fields.is_first && ReadExpected(scan, request)) {
    if (FF_CONSUME(scan, NEXT, stages)) ReadStages(scan);
    if (FF_CONSUME(scan, NEXT, dit)) {
      ReadOptionalObject(scan, request.dit);
    }
    ReadExpectedDevice(scan, request);
  }
  while (scan.NextField(fields)) {
    const absl::string_view key = fields.key;
    if (ReadField(key, scan, request)) continue;
    if (Is(key, "stages")) {
      ReadStages(scan);
    } else if (Is(key, "dit")) {
      ReadOptionalObject(scan, request.dit);
    } else if (Is(key, "vae")) {
      ReadOptionalObject(scan, request.vae);
    } else if (!ReadDeviceField(key, scan, request)) {
      scan.SkipValue();
    }
  }
}

void PerfRecordParser::State::ReadWindow(JsonScanner& scan,
                                         JsonScanner::Fields& fields) {
  if (!fields.is_first && ReadExpected(scan, window)) {
    if (FF_CONSUME(scan, NEXT, phases_s)) ReadPhases(scan);
    if (FF_CONSUME(scan, NEXT, micro_steps)) {
      scan.ReadDouble(window.micro_steps);
    }
    if (FF_CONSUME(scan, NEXT, overrun_s)) {
      scan.ReadDouble(window.overrun_s);
    }
    ReadExpectedDevice(scan, window);
    if (FF_CONSUME(scan, NEXT, throughput)) {
      ReadThroughput(scan, window.throughput);
    }
  }
  while (scan.NextField(fields)) {
    const absl::string_view key = fields.key;
    if (ReadField(key, scan, window)) continue;
    if (Is(key, "phases_s")) {
      ReadPhases(scan);
    } else if (Is(key, "micro_steps")) {
      scan.ReadDouble(window.micro_steps);
    } else if (Is(key, "overrun_s")) {
      scan.ReadDouble(window.overrun_s);
    } else if (Is(key, "throughput")) {
      ReadThroughput(scan, window.throughput);
    } else if (Is(key, "eta_s")) {
      scan.ReadDouble(window.eta_s);
    } else if (!ReadDeviceField(key, scan, window)) {
      scan.SkipValue();
    }
  }
}

PerfRecordParser::PerfRecordParser() : state_(std::make_unique<State>()) {}
PerfRecordParser::~PerfRecordParser() = default;

absl::StatusOr<PerfRecordKind> PerfRecordParser::Parse(absl::string_view line) {
  State& s = *state_;
  JsonScanner scan(line);
  // Both programs write the kind first; whoever does not pays for a search.
  std::optional<PerfRecordKind> guess = GuessKind(scan);
  const bool has_begun = guess.has_value();
  if (!has_begun) scan.Restart();
  const PerfRecordKind kind = has_begun ? *guess : FindKind(line);
  auto fields = FieldsAfter(has_begun, scan);
  if (scan.ok() && !fields.is_object) {
    return absl::InvalidArgumentError("expected an object");
  }
  s.Reset(kind);
  if (kind == PerfRecordKind::kRequest) {
    s.ReadRequest(scan, fields);
  } else if (kind == PerfRecordKind::kTrainWindow) {
    s.ReadWindow(scan, fields);
  } else {
    while (scan.NextField(fields)) scan.SkipValue();
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
  return kind;
}

const RequestRecord& PerfRecordParser::request() const {
  return state_->request;
}

const TrainWindowRecord& PerfRecordParser::train_window() const {
  return state_->window;
}

}  // namespace firstframe
