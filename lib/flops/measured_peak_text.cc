#include "lib/flops/measured_peak_text.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace firstframe {
namespace {

std::optional<double> Datasheet(const absl::StatusOr<DevicePeak>& device,
                                MathType math) {
  if (!device.ok()) return std::nullopt;
  const absl::StatusOr<double> rate = PeakTflops(*device, math);
  if (!rate.ok()) return std::nullopt;
  return *rate;
}

std::string NumberOrDash(const char* format, std::optional<double> value) {
  if (!value) return "-";
  return absl::StrFormat(*absl::ParsedFormat<'f'>::New(format), *value);
}

// What a reader must know before dividing by these rates.
std::vector<std::string> Notes(const MeasuredPeak& peak,
                               const absl::StatusOr<DevicePeak>& device) {
  std::vector<std::string> notes;
  if (!device.ok()) {
    notes.push_back(
        absl::StrCat("no datasheet rate: ", device.status().message()));
  }
  if (!peak.state_reason.empty()) {
    notes.push_back(
        absl::StrCat("clocks and power are unknown: ", peak.state_reason));
  }
  bool is_mig = absl::StrContains(peak.device_name, " MIG ");
  std::optional<DeviceState> state;
  for (const MeasuredRate& rate : peak.rates) {
    if (rate.state) state = rate.state;
    if (!rate.unavailable_reason.empty()) {
      notes.push_back(
          absl::StrCat(MathTypeName(rate.math), ": ", rate.unavailable_reason));
    }
    const std::optional<double> sheet = Datasheet(device, rate.math);
    if (sheet && rate.best_tflops > *sheet) {
      notes.push_back(absl::StrFormat(
          "%s is over 100%% of the datasheet: the board boosts past its "
          "nominal clock, or the table's rate is wrong",
          std::string(MathTypeName(rate.math))));
    }
  }
  if (state && state->mig_enabled.value_or(false)) is_mig = true;
  if (is_mig) {
    notes.push_back(
        "MIG is on: the rates are those of the slice, clock and power the "
        "whole board's");
  }
  if (state && state->power_limit_w && state->default_power_limit_w &&
      *state->power_limit_w < *state->default_power_limit_w) {
    notes.push_back(
        absl::StrFormat("the power limit is %.0f W, the board's own %.0f W",
                        *state->power_limit_w, *state->default_power_limit_w));
  }
  return notes;
}

std::string HeldBackBy(const MeasuredRate& rate) {
  if (!rate.state) return "-";
  const std::vector<std::string> names =
      ClockReasonNames(rate.state->clock_reasons);
  return names.empty() ? "nothing" : absl::StrJoin(names, ", ");
}

void WriteState(const DeviceState& state, JsonWriter& json) {
  json.BeginObject();
  json.Key("sm_clock_mhz").OptionalDouble(state.sm_clock_mhz);
  json.Key("max_sm_clock_mhz").OptionalDouble(state.max_sm_clock_mhz);
  json.Key("power_w").OptionalDouble(state.power_w);
  json.Key("power_limit_w").OptionalDouble(state.power_limit_w);
  json.Key("default_power_limit_w").OptionalDouble(state.default_power_limit_w);
  json.Key("temperature_c").OptionalDouble(state.temperature_c);
  json.Key("mig_enabled");
  state.mig_enabled ? json.Bool(*state.mig_enabled) : json.Null();
  json.Key("held_back_by").BeginArray();
  for (const std::string& name : ClockReasonNames(state.clock_reasons)) {
    json.String(name);
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

void WriteMeasuredPeakText(const MeasuredPeak& peak, const DevicePeaks& peaks,
                           std::ostream& out) {
  const auto device = FindDevicePeak(peaks, peak.device_name);
  out << absl::StrFormat("%s, products of %d x %d, TFLOPS\n", peak.device_name,
                         peak.size, peak.size);
  out << "math       best   median sustained datasheet    best/sheet  SM MHz "
         "     W  held back by\n";
  for (const MeasuredRate& rate : peak.rates) {
    if (!rate.unavailable_reason.empty()) continue;
    const std::optional<double> sheet = Datasheet(device, rate.math);
    const DeviceState state = rate.state.value_or(DeviceState{});
    const std::string share =
        sheet ? absl::StrFormat("%.1f%%%s", rate.best_tflops / *sheet * 100,
                                rate.best_tflops > *sheet ? " (!)" : "")
              : "-";
    out << absl::StrFormat(
        "%-5s %9.1f %8.1f %9s %9s %13s %7s %6s  %s\n", MathTypeName(rate.math),
        rate.best_tflops, rate.median_tflops,
        NumberOrDash("%.1f", rate.sustained_tflops),
        NumberOrDash("%.1f", sheet), share,
        NumberOrDash("%.0f", state.sm_clock_mhz),
        NumberOrDash("%.0f", state.power_w), HeldBackBy(rate));
  }
  out << absl::StrFormat("copy  %9.1f GB/s, read and written\n",
                         peak.copy_gb_per_s);
  out << absl::StrFormat("events saw %.4f s of %.4f s on the host clock\n",
                         peak.event_s, peak.wall_s);
  for (const std::string& note : Notes(peak, device)) {
    out << "note: " << note << '\n';
  }
}

void WriteMeasuredPeakJson(const MeasuredPeak& peak, const DevicePeaks& peaks,
                           JsonWriter& json) {
  const auto device = FindDevicePeak(peaks, peak.device_name);
  json.Key("device").String(peak.device_name);
  json.Key("matrix_size").Int(peak.size);
  json.Key("samples").BeginArray();
  for (const MeasuredRate& rate : peak.rates) {
    const bool has_rate = rate.unavailable_reason.empty();
    const std::optional<double> sheet = Datasheet(device, rate.math);
    const auto number = [&json, has_rate](const char* key, double value) {
      json.Key(key);
      has_rate ? json.Double(value) : json.Null();
    };
    json.BeginObject();
    json.Key("math").String(MathTypeName(rate.math));
    json.Key("samples_tflops").BeginArray();
    for (const double sample : rate.samples_tflops) json.Double(sample);
    json.EndArray();
    number("best_tflops", rate.best_tflops);
    number("median_tflops", rate.median_tflops);
    json.Key("sustained_tflops").OptionalDouble(rate.sustained_tflops);
    json.Key("datasheet_tflops").OptionalDouble(sheet);
    json.Key("above_datasheet").Bool(sheet && rate.best_tflops > *sheet);
    number("largest_error", rate.largest_error);
    json.Key("state");
    rate.state ? WriteState(*rate.state, json) : (void)json.Null();
    json.EndObject();
  }
  json.EndArray();
  json.Key("copy_gb_per_s").Double(peak.copy_gb_per_s);
  json.Key("event_s").Double(peak.event_s);
  json.Key("wall_s").Double(peak.wall_s);
  json.Key("notes").BeginArray();
  for (const std::string& note : Notes(peak, device)) json.String(note);
  json.EndArray();
}

}  // namespace firstframe
