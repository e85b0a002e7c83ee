#include "lib/offload/offload_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "lib/base/json_document.h"
#include "lib/base/json_writer.h"
#include "lib/base/percentile.h"

namespace firstframe {
namespace {

double Gigabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

// Bytes a nanosecond are gigabytes a second; none for nothing moved.
std::optional<double> Rate(uint64_t bytes, int64_t ns) {
  if (bytes == 0 || ns <= 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(ns);
}

std::optional<double> PercentOfLimit(const OffloadBenchResult& result,
                                     const OffloadSample& sample) {
  const auto rate = Rate(sample.h2d_bytes, sample.load_ns);
  if (!rate || result.limit_gb_per_s() <= 0) return std::nullopt;
  return *rate / result.limit_gb_per_s() * 100;
}

std::string Cell(std::optional<double> value, const char* suffix = "") {
  return value ? absl::StrFormat("%.1f%s", *value, suffix) : "-";
}

// Of the samples after the first, which includes making the host copy; of the
// first when there is no other.
template <typename Member>
double MedianMs(const StrategyResult& strategy, Member member) {
  std::vector<double> values;
  for (size_t i = strategy.samples.size() > 1 ? 1 : 0;
       i < strategy.samples.size(); ++i) {
    values.push_back(static_cast<double>(strategy.samples[i].*member) / 1e6);
  }
  return Percentile(std::move(values), 50);
}

// Of the load's median; the same in every cycle after the first.
std::optional<double> MedianPercentOfLimit(const OffloadBenchResult& result,
                                           const StrategyResult& strategy) {
  if (strategy.samples.empty()) return std::nullopt;
  OffloadSample sample = strategy.samples.back();
  sample.load_ns =
      static_cast<int64_t>(MedianMs(strategy, &OffloadSample::load_ns) * 1e6);
  return PercentOfLimit(result, sample);
}

double MedianCycleMs(const StrategyResult& strategy) {
  return MedianMs(strategy, &OffloadSample::load_ns) +
         MedianMs(strategy, &OffloadSample::unload_ns);
}

const StrategyResult* FindBaseline(const OffloadBenchResult& result) {
  for (const StrategyResult& strategy : result.strategies) {
    if (strategy.strategy == OffloadStrategy::kRoundtrip &&
        !strategy.samples.empty()) {
      return &strategy;
    }
  }
  return nullptr;
}

std::optional<double> SpeedUp(const OffloadBenchResult& result,
                              const StrategyResult& strategy) {
  const StrategyResult* const base = FindBaseline(result);
  if (base == nullptr || base == &strategy || result.is_identity) {
    return std::nullopt;
  }
  const double ms = MedianCycleMs(strategy);
  if (ms <= 0) return std::nullopt;
  return MedianCycleMs(*base) / ms;
}

void WriteStrategyText(const OffloadBenchResult& result,
                       const StrategyResult& strategy, std::ostream& out) {
  out << "\n" << std::string(OffloadStrategyName(strategy.strategy));
  if (!strategy.skipped.empty()) {
    out << ": skipped: " << strategy.skipped << "\n";
    return;
  }
  out << absl::StrFormat(
      ": host %.3f GB pinned, %.3f GB pageable, %.3f GB mapped; device %.3f "
      "GB\n",
      Gigabytes(strategy.pinned_bytes), Gigabytes(strategy.pageable_bytes),
      Gigabytes(strategy.mapped_bytes), Gigabytes(strategy.device_bytes));
  if (strategy.pin_ns + strategy.populate_ns + strategy.fill_ns > 0) {
    const double gib =
        static_cast<double>(strategy.pinned_bytes + strategy.mapped_bytes) /
        (uint64_t{1} << 30);
    out << absl::StrFormat(
        "  once: populate %.1f ms, fill %.1f ms, pin %.1f ms",
        strategy.populate_ns / 1e6, strategy.fill_ns / 1e6,
        strategy.pin_ns / 1e6);
    if (gib > 0) {
      out << absl::StrFormat(
          " (populate and pin %.4f s/GiB)",
          (strategy.populate_ns + strategy.pin_ns) / 1e9 / gib);
    }
    out << "\n";
  }
  out << "  cycle    load ms     GB/s  of limit   alloc ms  unload ms  settle "
         "ms    H2D GB    D2H GB  avoided GB\n";
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < strategy.samples.size(); ++i) {
    if (i == kShown / 2 && strategy.samples.size() > kShown) {
      out << "  ...\n";
      i = strategy.samples.size() - kShown / 2;
    }
    const OffloadSample& sample = strategy.samples[i];
    out << absl::StrFormat(
        "  %5d %10.3f %8s %9s %10.3f %10.3f %10.3f %9.3f %9.3f %11.3f\n", i + 1,
        sample.load_ns / 1e6, Cell(Rate(sample.h2d_bytes, sample.load_ns)),
        Cell(PercentOfLimit(result, sample), " %"), sample.allocate_ns / 1e6,
        sample.unload_ns / 1e6, sample.settle_ns / 1e6,
        Gigabytes(sample.h2d_bytes), Gigabytes(sample.d2h_bytes),
        Gigabytes(sample.d2h_avoided_bytes));
  }
  out << absl::StrFormat("  median after the first: load %.3f ms",
                         MedianMs(strategy, &OffloadSample::load_ns));
  if (const auto percent = MedianPercentOfLimit(result, strategy)) {
    out << absl::StrFormat(" (%.1f %% of the limit)", *percent);
  }
  out << absl::StrFormat(", unload %.3f ms",
                         MedianMs(strategy, &OffloadSample::unload_ns));
  if (const auto speed_up = SpeedUp(result, strategy)) {
    out << absl::StrFormat("; a cycle is %.1f times the roundtrip's speed",
                           *speed_up);
  }
  out << "\n";
  if (strategy.verified.has_value()) {
    out << "  verified: " << (*strategy.verified ? "yes" : "NO") << "\n";
  }
  for (const std::string& note : strategy.degraded) {
    out << "  note: " << note << "\n";
  }
}

void WriteSample(const OffloadBenchResult& result,
                 const StrategyResult& strategy, size_t cycle,
                 JsonWriter& json) {
  const OffloadSample& sample = strategy.samples[cycle];
  json.BeginObject();
  json.Key("strategy").String(OffloadStrategyName(strategy.strategy));
  json.Key("cycle").Uint(cycle);
  json.Key("load_ns").Int(sample.load_ns);
  json.Key("allocate_ns").Int(sample.allocate_ns);
  json.Key("submit_ns").Int(sample.submit_ns);
  json.Key("unload_ns").Int(sample.unload_ns);
  json.Key("settle_ns").Int(sample.settle_ns);
  json.Key("h2d_bytes").Uint(sample.h2d_bytes);
  json.Key("d2h_bytes").Uint(sample.d2h_bytes);
  json.Key("d2h_avoided_bytes").Uint(sample.d2h_avoided_bytes);
  json.Key("load_gb_per_s")
      .OptionalDouble(Rate(sample.h2d_bytes, sample.load_ns));
  json.Key("percent_of_limit").OptionalDouble(PercentOfLimit(result, sample));
  json.EndObject();
}

void WriteStrategy(const OffloadBenchResult& result,
                   const StrategyResult& strategy, JsonWriter& json) {
  json.BeginObject();
  json.Key("strategy").String(OffloadStrategyName(strategy.strategy));
  if (!strategy.skipped.empty()) {
    json.Key("skipped").String(strategy.skipped);
    json.EndObject();
    return;
  }
  json.Key("host_pinned_bytes").Uint(strategy.pinned_bytes);
  json.Key("host_pageable_bytes").Uint(strategy.pageable_bytes);
  json.Key("host_mapped_bytes").Uint(strategy.mapped_bytes);
  json.Key("device_bytes").Uint(strategy.device_bytes);
  json.Key("populate_ns").Int(strategy.populate_ns);
  json.Key("fill_ns").Int(strategy.fill_ns);
  json.Key("pin_ns").Int(strategy.pin_ns);
  json.Key("copies_per_load").Uint(strategy.copies);
  json.Key("load_median_ms")
      .Double(MedianMs(strategy, &OffloadSample::load_ns));
  json.Key("percent_of_limit_median")
      .OptionalDouble(MedianPercentOfLimit(result, strategy));
  json.Key("unload_median_ms")
      .Double(MedianMs(strategy, &OffloadSample::unload_ns));
  json.Key("speed_up_over_roundtrip").OptionalDouble(SpeedUp(result, strategy));
  json.Key("resident_bytes_after_first").Int(strategy.resident_bytes[0]);
  json.Key("resident_bytes_after_last").Int(strategy.resident_bytes[1]);
  json.Key("device_free_bytes_after_first").Int(strategy.device_free_bytes[0]);
  json.Key("device_free_bytes_after_last").Int(strategy.device_free_bytes[1]);
  json.Key("verified");
  if (strategy.verified.has_value()) {
    json.Bool(*strategy.verified);
  } else {
    json.Null();
  }
  json.Key("degraded").BeginArray();
  for (const std::string& note : strategy.degraded) json.String(note);
  json.EndArray();
  json.EndObject();
}

void WriteOptional(absl::string_view key, std::optional<uint64_t> value,
                   JsonWriter& json) {
  json.Key(key);
  if (value.has_value()) {
    json.Uint(*value);
  } else {
    json.Null();
  }
}

void WriteContext(const OffloadBenchResult& result,
                  const OffloadBenchOptions& options,
                  const OffloadContext& context, JsonWriter& json) {
  json.BeginObject();
  json.Key("machine");
  WriteJson(context.machine, json);
  json.Key("device");
  if (context.device.has_value()) {
    json.String(context.device->name);
  } else {
    json.Null();
  }
  json.Key("source").String(context.source);
  json.Key("tensors").Uint(result.tensors);
  json.Key("tensor_bytes").Uint(result.tensor_bytes);
  json.Key("cycles").Int(options.cycles);
  json.Key("pin").Bool(options.store.pin.pin);
  json.Key("guard").Bool(options.store.guard);
  json.Key("first_chunk_bytes").Uint(options.store.chunks.first_bytes);
  json.Key("chunk_bytes").Uint(options.store.chunks.most_bytes);
  json.Key("rest_ms").Int(absl::ToInt64Milliseconds(result.rest));
  WriteOptional("cgroup_limit_bytes", context.memory.cgroup_limit_bytes, json);
  WriteOptional("memlock_limit_bytes", context.memory.memlock_limit_bytes,
                json);
  json.Key("pinnable_bytes").Uint(context.memory.PinnableBytes());
  json.EndObject();
}

}  // namespace

void WriteOffloadText(const OffloadBenchResult& result,
                      const OffloadContext& context, std::ostream& out) {
  out << absl::StrFormat(
      "%d tensors, %.3f GB, %s, %s\n", result.tensors,
      Gigabytes(result.tensor_bytes), context.source,
      context.device ? context.device->name : "no device: nothing is moved");
  if (!result.pinned_h2d_gb_per_s.empty()) {
    out << absl::StrFormat(
        "limit: %.2f GB/s, pinned copies to the device; %d ms rest after each "
        "cycle\n",
        result.limit_gb_per_s(), absl::ToInt64Milliseconds(result.rest));
  } else if (!result.is_identity) {
    out << "limit: not measured: its block could not be pinned\n";
  }
  for (const StrategyResult& strategy : result.strategies) {
    WriteStrategyText(result, strategy, out);
  }
}

void WriteOffloadJson(const OffloadBenchResult& result,
                      const OffloadBenchOptions& options,
                      const OffloadContext& context, std::ostream& out) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginJsonDocument("offload_bench", 1, json);
  json.Key("context");
  WriteContext(result, options, context, json);
  json.Key("samples").BeginArray();
  for (const StrategyResult& strategy : result.strategies) {
    for (size_t i = 0; i < strategy.samples.size(); ++i) {
      WriteSample(result, strategy, i, json);
    }
  }
  json.EndArray();
  json.Key("summary").BeginObject();
  json.Key("strategies").BeginArray();
  for (const StrategyResult& strategy : result.strategies) {
    WriteStrategy(result, strategy, json);
  }
  json.EndArray();
  json.Key("limits").BeginObject();
  json.Key("pinned_h2d_gb_per_s").BeginArray();
  for (const double rate : result.pinned_h2d_gb_per_s) json.Double(rate);
  json.EndArray();
  json.EndObject();
  json.EndObject();
  json.EndObject();
  out << text << "\n";
}

}  // namespace firstframe
