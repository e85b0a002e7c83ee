#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/activation/report.h"
#include "lib/activation/trace_page_assets.h"
#include "lib/base/json_writer.h"
#include "lib/html/page.h"

namespace firstframe {
namespace {

// Points drawn; a longer trace keeps the worst of each stretch, and whatever
// fired.
constexpr size_t kMaxPoints = 6000;

std::vector<size_t> PointsOf(const Divergence& d) {
  const size_t n = d.rows.size();
  std::vector<size_t> points;
  if (n <= kMaxPoints) {
    for (size_t i = 0; i < n; ++i) points.push_back(i);
    return points;
  }
  const size_t stretch = (n + kMaxPoints - 1) / kMaxPoints;
  for (size_t begin = 0; begin < n; begin += stretch) {
    size_t best = begin;
    for (size_t i = begin; i < std::min(n, begin + stretch); ++i) {
      const auto rank = [&](size_t k) {
        return std::make_pair(d.first == k, d.rows[k].jump());
      };
      if (rank(i) > rank(best)) best = i;
    }
    points.push_back(best);
  }
  return points;
}

void WritePoint(const Comparison& c, size_t i, JsonWriter* json) {
  const RowVerdict& v = c.divergence.rows[i];
  const TraceRow& row = c.alignment.a.table.rows[c.alignment.pairs[i].a];
  const TraceRow& other = c.alignment.b.table.rows[c.alignment.pairs[i].b];
  json->BeginObject();
  json->Key("i").Uint(c.alignment.PairNumber(i));
  json->Key("place").String(DescribePlace(c, i));
  json->Key("op").String(
      c.alignment.templates[c.alignment.entities[c.alignment.entity_a[row.key]]
                                .template_id]);
  json->Key("statistics").Double(v.coherent);
  json->Key("elements")
      .OptionalDouble(v.energy < 0 ? std::nullopt
                                   : std::optional<double>(v.energy));
  json->Key("jump").Double(v.jump());
  json->Key("expected").Double(v.expected());
  json->Key("limit").OptionalDouble(
      DetectionLimit(v, kCoherent, c.divergence.options));
  json->Key("fired").Bool(v.Fires());
  json->Key("hard").Bool(v.hard != 0);
  json->Key("match").String(MatchMethodName(c.alignment.pairs[i].method));
  json->Key("left").BeginArray();
  for (const float value : row.values) json->Double(value);
  json->EndArray();
  json->Key("right").BeginArray();
  for (const float value : other.values) json->Double(value);
  json->EndArray();
  json->EndObject();
}

}  // namespace

std::string RenderHtml(const Comparison& c) {
  std::string data;
  JsonWriter json(&data);
  json.BeginObject();
  json.Key("verdict").String(VerdictName(c.verdict));
  json.Key("explanation").String(Explain(c));
  json.Key("pairs").Uint(c.alignment.NumPaired());
  json.Key("fired").Int(c.divergence.num_fired);
  json.Key("unmatched")
      .Uint(c.alignment.unmatched_a.size() + c.alignment.unmatched_b.size());
  json.Key("worst").Double(
      std::max(c.divergence.worst_coherent, c.divergence.worst_energy));
  if (c.divergence.first) {
    json.Key("first").Uint(c.alignment.PairNumber(*c.divergence.first));
  } else {
    json.Key("first").Null();
  }
  json.Key("notes").BeginArray();
  for (const std::string& trouble : c.trouble) json.String(trouble);
  for (const std::string& warning : c.warnings) json.String(warning);
  json.EndArray();
  json.Key("points").BeginArray();
  for (const size_t i : PointsOf(c.divergence)) WritePoint(c, i, &json);
  json.EndArray();
  json.EndObject();

  std::ostringstream text;
  WriteText(c, {}, text);
  const std::string fallback = text.str();
  const std::string subtitle = absl::StrCat(
      c.alignment.a.table.name, " against ", c.alignment.b.table.name);
  return RenderHtmlPage({.title = "Activation traces compared",
                         .subtitle = subtitle,
                         .data_json = data,
                         .style = kTracePageCss,
                         .script = kTracePageJs,
                         .fallback = fallback});
}

}  // namespace firstframe
