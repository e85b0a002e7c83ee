#include "lib/wan_vae/testdata.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/testing/temp_dir.h"
#include "simdjson.h"

namespace firstframe::testing {
namespace {

Shape ReadShape(simdjson::dom::element list) {
  Shape shape;
  for (int64_t extent : simdjson::dom::array(list)) shape.push_back(extent);
  return shape;
}

template <typename Visit>
void ForEachLine(absl::string_view name, const Visit& visit) {
  std::istringstream lines(ReadFile(VaeTestdata(name)));
  simdjson::dom::parser parser;
  for (std::string line; std::getline(lines, line);)
    visit(parser.parse(line).value());
}

}  // namespace

std::string VaeTestdata(absl::string_view name) {
  return absl::StrCat("testdata/wan_vae/", name);
}

std::vector<GoldenParameter> ReadGoldenParameters(absl::string_view preset) {
  std::vector<GoldenParameter> result;
  ForEachLine(
      absl::StrCat(preset, "_tensors.jsonl"), [&](simdjson::dom::element line) {
        result.push_back({std::string(std::string_view(line["name"])),
                          ReadShape(line["shape"]),
                          std::string(std::string_view(line["sha256"]))});
      });
  return result;
}

std::vector<GoldenOutput> ReadGoldenOutputs(absl::string_view name) {
  std::vector<GoldenOutput> result;
  ForEachLine(name, [&](simdjson::dom::element line) {
    result.push_back({std::string(std::string_view(line["module"])),
                      ReadShape(line["shape"]), double(line["abs_mean"]),
                      double(line["sum"]), double(line["min"]),
                      double(line["max"])});
  });
  return result;
}

std::map<std::string, FloatTensor> ReadGoldenTensors(absl::string_view name) {
  const std::string bytes = ReadFile(VaeTestdata(name));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  simdjson::dom::parser parser;
  const simdjson::dom::element header =
      parser.parse(bytes.data() + sizeof(header_bytes), header_bytes);
  const char* const data = bytes.data() + sizeof(header_bytes) + header_bytes;
  std::map<std::string, FloatTensor> result;
  for (const auto& field : simdjson::dom::object(header)) {
    if (field.key == "__metadata__") continue;
    FF_CHECK(std::string_view(field.value["dtype"]) == "F32");
    FloatTensor& tensor = result[std::string(field.key)];
    tensor.shape = ReadShape(field.value["shape"]);
    const int64_t begin = field.value["data_offsets"].at(0);
    const int64_t end = field.value["data_offsets"].at(1);
    tensor.values.resize((end - begin) / sizeof(float));
    std::memcpy(tensor.values.data(), data + begin, end - begin);
  }
  return result;
}

double RelativeL2(const FloatTensor& found, const FloatTensor& expected) {
  if (found.shape != expected.shape)
    return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double e = expected.values[i], d = found.values[i] - e;
    difference += d * d;
    norm += e * e;
  }
  return std::sqrt(difference / norm);
}

}  // namespace firstframe::testing
