#include "lib/regions/region_report.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

// Percent-encoding of workflow commands: github.com/actions/toolkit,
// packages/core/src/command.ts.
std::string EscapeGithub(absl::string_view text, bool is_property) {
  std::string escaped =
      absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
  if (is_property) {
    escaped = absl::StrReplaceAll(escaped, {{":", "%3A"}, {",", "%2C"}});
  }
  return escaped;
}

void WriteGithub(std::ostream& out, bool is_error, absl::string_view path,
                 int line, absl::string_view title, absl::string_view message) {
  out << "::" << (is_error ? "error" : "warning") << " ";
  if (!path.empty()) {
    out << "file=" << EscapeGithub(path, true) << ",line=" << line << ",";
  }
  out << "title=" << EscapeGithub(title, true)
      << "::" << EscapeGithub(message, false) << "\n";
}

void WriteStrings(JsonWriter& json, const std::vector<std::string>& values) {
  json.BeginArray();
  for (const std::string& value : values) json.String(value);
  json.EndArray();
}

void WriteLine(std::ostream& out, const std::string& line) {
  out << line << "\n";
}

void WriteFindingJson(const RegionFinding& finding, std::ostream& out) {
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("finding");
  json.Key("finding").String(RegionFindingKindName(finding.kind));
  json.Key("severity").String(IsError(finding.kind) ? "error" : "warning");
  json.Key("name").String(finding.name);
  json.Key("path").String(finding.path);
  json.Key("line").Int(finding.line);
  json.Key("message").String(finding.message);
  json.Key("nearest");
  if (finding.nearest.empty()) {
    json.Null();
  } else {
    json.String(finding.nearest);
  }
  json.EndObject();
  WriteLine(out, line);
}

}  // namespace

void WriteRegistry(const RegionRegistry& registry, RegionReportFormat format,
                   std::ostream& out) {
  size_t width = 0;
  for (const auto& [name, region] : registry.regions()) {
    width = std::max(width, name.size());
  }
  for (const auto& [name, region] : registry.regions()) {
    if (format == RegionReportFormat::kJsonl) {
      std::string line;
      JsonWriter json(&line);
      json.BeginObject();
      json.Key("kind").String("region");
      json.Key("name").String(name);
      json.Key("long_name").String(absl::StrCat(kRegionLongPrefix, name));
      json.Key("span").String(RegionSpanName(name));
      json.Key("description").String(region.description);
      json.Key("owner").String(region.owner);
      json.Key("since").String(region.since);
      json.Key("aliases");
      WriteStrings(json, region.aliases);
      json.Key("deprecated").String(region.deprecated);
      json.EndObject();
      WriteLine(out, line);
      continue;
    }
    out << name << std::string(width + 2 - name.size(), ' ')
        << region.description;
    if (!region.aliases.empty()) {
      out << " (also " << absl::StrJoin(region.aliases, ", ") << ")";
    }
    if (!region.deprecated.empty()) {
      out << " [deprecated: " << region.deprecated << "]";
    }
    out << "\n";
  }
}

void WriteSelection(absl::string_view setting, const RegionSelection& selection,
                    const std::vector<std::string>& warnings,
                    RegionReportFormat format, std::ostream& out) {
  switch (format) {
    case RegionReportFormat::kJsonl: {
      std::string line;
      JsonWriter json(&line);
      json.BeginObject();
      json.Key("kind").String("selection");
      json.Key("setting").String(setting);
      json.Key("regions");
      WriteStrings(json, selection.names());
      json.EndObject();
      WriteLine(out, line);
      for (const std::string& warning : warnings) {
        line.clear();
        JsonWriter warn(&line);
        warn.BeginObject();
        warn.Key("kind").String("warning");
        warn.Key("message").String(warning);
        warn.EndObject();
        WriteLine(out, line);
      }
      return;
    }
    case RegionReportFormat::kGithub:
      for (const std::string& warning : warnings) {
        WriteGithub(out, false, "", 0, "regions", warning);
      }
      return;
    case RegionReportFormat::kText:
      out << "selected: "
          << (selection.names().empty()
                  ? "nothing"
                  : absl::StrJoin(selection.names(), ", "))
          << "\n";
      for (const std::string& warning : warnings) {
        out << "warning: " << warning << "\n";
      }
  }
}

void WriteSourceCheck(const SourceScan& scan, const SourceCheck& check,
                      RegionReportFormat format, std::ostream& out) {
  for (const RegionFinding& finding : check.findings) {
    switch (format) {
      case RegionReportFormat::kJsonl:
        WriteFindingJson(finding, out);
        break;
      case RegionReportFormat::kGithub:
        WriteGithub(out, IsError(finding.kind), finding.path, finding.line,
                    RegionFindingKindName(finding.kind), finding.message);
        break;
      case RegionReportFormat::kText:
        out << finding.path << ":" << finding.line << ": "
            << (IsError(finding.kind) ? "error" : "warning") << ": "
            << finding.message << " [" << RegionFindingKindName(finding.kind)
            << "]\n";
    }
  }
  const int64_t errors = std::count_if(
      check.findings.begin(), check.findings.end(),
      [](const RegionFinding& finding) { return IsError(finding.kind); });
  const int64_t warnings = static_cast<int64_t>(check.findings.size()) - errors;
  if (format == RegionReportFormat::kGithub) return;
  if (format == RegionReportFormat::kText) {
    out << scan.file_count << " files, " << check.registered.size()
        << " registered regions"
        << (check.tree_registers ? "" : " (built in: the tree registers none)")
        << ", " << errors << (errors == 1 ? " error, " : " errors, ")
        << warnings << (warnings == 1 ? " warning" : " warnings") << "\n";
    return;
  }
  std::string line;
  JsonWriter json(&line);
  json.BeginObject();
  json.Key("kind").String("source_summary");
  json.Key("file_count").Int(scan.file_count);
  json.Key("size_bytes").Int(scan.byte_count);
  json.Key("registered_by_tree").Bool(check.tree_registers);
  json.Key("registered");
  WriteStrings(json, check.registered);
  json.Key("error_count").Int(errors);
  json.Key("warning_count").Int(warnings);
  json.Key("skipped");
  WriteStrings(json, scan.skipped);
  json.EndObject();
  WriteLine(out, line);
}

void WriteTracedRegions(absl::string_view trace,
                        const std::vector<TracedRegion>& regions,
                        RegionReportFormat format, std::ostream& out) {
  if (regions.empty() && format == RegionReportFormat::kText) {
    out << trace << ": no region\n";
  }
  for (const TracedRegion& region : regions) {
    const std::string note =
        region.registered ? ""
        : region.nearest.empty()
            ? "not registered"
            : absl::StrCat("not registered; nearest: '", region.nearest, "'");
    switch (format) {
      case RegionReportFormat::kJsonl: {
        std::string line;
        JsonWriter json(&line);
        json.BeginObject();
        json.Key("kind").String("traced_region");
        json.Key("trace").String(trace);
        json.Key("name").String(region.name);
        json.Key("count").Int(region.count);
        json.Key("total_ns").Int(region.total_ns);
        json.Key("registered").Bool(region.registered);
        json.Key("nearest");
        if (region.nearest.empty()) {
          json.Null();
        } else {
          json.String(region.nearest);
        }
        json.EndObject();
        WriteLine(out, line);
        break;
      }
      case RegionReportFormat::kGithub:
        if (!note.empty()) {
          WriteGithub(out, false, trace, 1, "traced_region",
                      absl::StrCat("region '", region.name, "': ", note));
        }
        break;
      case RegionReportFormat::kText:
        out << absl::StreamFormat("%s: %s  %d times  %.3f ms", trace,
                                  region.name, region.count,
                                  region.total_ns * 1e-6);
        if (!note.empty()) out << "  (" << note << ")";
        out << "\n";
    }
  }
}

}  // namespace firstframe
