#include "lib/flops/flops_tables.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/known_models.h"

namespace firstframe {
namespace {

int64_t ParamsOf(const ModelDescription& model) {
  return model.compat ? model.compat->params : 0;
}

std::string RateOrDash(double rate) {
  return rate > 0 ? absl::StrFormat("%g", rate) : "-";
}

}  // namespace

void WriteKnownModelsText(std::ostream& out) {
  for (const std::string& name : KnownModelNames()) {
    const ModelDescription model = *KnownModel(name);
    out << absl::StrFormat("%-20s %-32s", name, model.class_name);
    if (const int64_t params = ParamsOf(model); params > 0) {
      out << absl::StrFormat(" %14d parameters", params);
    }
    out << '\n';
  }
}

void WriteKnownModelsJson(JsonWriter& json) {
  json.Key("models").BeginArray();
  for (const std::string& name : KnownModelNames()) {
    const ModelDescription model = *KnownModel(name);
    const int64_t params = ParamsOf(model);
    json.BeginObject();
    json.Key("name").String(name);
    json.Key("class").String(model.class_name);
    json.Key("params");
    params > 0 ? json.Int(params) : json.Null();
    json.EndObject();
  }
  json.EndArray();
}

void WritePeaksText(const DevicePeaks& peaks, std::ostream& out) {
  out << "board                      fp32    tf32    bf16     fp8    GB/s  "
         "source\n";
  for (const DevicePeak& device : peaks.device()) {
    out << absl::StrFormat(
        "%-23s %7s %7s %7s %7s %7s  %s (%s)\n", device.board(),
        RateOrDash(device.fp32_tflops()), RateOrDash(device.tf32_tflops()),
        RateOrDash(device.bf16_tflops()), RateOrDash(device.fp8_tflops()),
        RateOrDash(device.memory_gb_per_s()), device.source(), device.date());
  }
}

void WritePeaksJson(const DevicePeaks& peaks, JsonWriter& json) {
  const auto rate = [&json](const char* key, double value) {
    json.Key(key);
    value > 0 ? json.Double(value) : json.Null();
  };
  json.Key("devices").BeginArray();
  for (const DevicePeak& device : peaks.device()) {
    json.BeginObject();
    json.Key("board").String(device.board());
    json.Key("names").BeginArray();
    for (const std::string& name : device.name()) json.String(name);
    json.EndArray();
    rate("fp32_tflops", device.fp32_tflops());
    rate("tf32_tflops", device.tf32_tflops());
    rate("bf16_tflops", device.bf16_tflops());
    rate("fp8_tflops", device.fp8_tflops());
    rate("memory_gb_per_s", device.memory_gb_per_s());
    json.Key("source").String(device.source());
    json.Key("date").String(device.date());
    json.Key("note").String(device.note());
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace firstframe
