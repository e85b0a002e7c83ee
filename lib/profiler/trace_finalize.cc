#include "lib/profiler/trace_finalize.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/json_writer.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/profiler/kineto_writer.h"
#include "lib/regions/region.h"
#include "lib/trace/byte_source.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

// Rows of the summary files: FastVideo's profiler writes 60.
constexpr size_t kSummaryRows = 60;

std::string ReadAll(const std::string& path) {
  std::string text;
  auto source = ByteSource::Open(path);
  if (!source.ok()) return text;
  std::string buffer(1 << 16, '\0');
  for (;;) {
    const auto n = (*source)->Read(buffer.data(), buffer.size());
    if (!n.ok() || *n == 0) return text;
    text.append(buffer.data(), *n);
  }
}

int64_t IntMember(absl::string_view object, absl::string_view key) {
  int64_t value = 0;
  static_cast<void>(absl::SimpleAtoi(FindJsonValue(object, key), &value));
  return value;
}

double DoubleMember(absl::string_view object, absl::string_view key) {
  double value = 0;
  static_cast<void>(absl::SimpleAtod(FindJsonValue(object, key), &value));
  return value;
}

std::string TextMember(absl::string_view object, absl::string_view key) {
  return DecodeJsonString(UnquoteJson(FindJsonValue(object, key)));
}

// The members of a JSON array, as they stand.
std::vector<absl::string_view> Items(absl::string_view array) {
  std::vector<absl::string_view> items;
  if (array.empty()) return items;
  const char* p = array.data() + 1;
  const char* const end = array.data() + array.size();
  JsonOddities ignored;
  for (;;) {
    p = SkipJsonSpace(p, end);
    if (p == end || *p == ']') return items;
    if (*p == ',') {
      ++p;
      continue;
    }
    const char* const after = SkipJsonValue(p, end, &ignored);
    if (after == nullptr || after == p) return items;
    items.emplace_back(p, after - p);
    p = after;
  }
}

std::vector<std::string> Strings(absl::string_view array) {
  std::vector<std::string> strings;
  for (const absl::string_view item : Items(array)) {
    strings.push_back(DecodeJsonString(UnquoteJson(item)));
  }
  return strings;
}

void ReadMeta(const std::string& meta, FinalizedProfile* profile) {
  profile->finished = FindJsonValue(meta, "finished") == "true";
  profile->rank = IntMember(meta, "rank");
  profile->pid = IntMember(meta, "pid");
  profile->process_name = TextMember(meta, "process_name");
  profile->wall_ns = IntMember(meta, "duration_ns");
  profile->cupti = TextMember(meta, "cupti");
  const absl::string_view counts = FindJsonValue(meta, "counts");
  profile->span_count = IntMember(counts, "spans");
  profile->kernel_count = IntMember(counts, "kernels");
  profile->copy_count = IntMember(counts, "copies");
  profile->api_count = IntMember(counts, "api_calls");
  profile->outside_count = IntMember(counts, "outside_regions");
  const absl::string_view dropped = FindJsonValue(meta, "dropped");
  profile->dropped_count = IntMember(dropped, "spans") +
                           IntMember(dropped, "cupti_records") +
                           IntMember(dropped, "cuda_events") +
                           IntMember(dropped, "over_byte_budget");
  const absl::string_view overhead = FindJsonValue(meta, "overhead");
  profile->span_cost_ns = DoubleMember(overhead, "span_cost_ns");
  profile->overhead_ns = DoubleMember(overhead, "spans_ns") +
                         DoubleMember(overhead, "cupti_ns") +
                         DoubleMember(overhead, "enable_ns");
  for (const absl::string_view region : Items(FindJsonValue(meta, "regions"))) {
    if (const int64_t ns = IntMember(region, "cuda_event_ns"); ns > 0) {
      profile->cuda_event_ns[TextMember(region, "name")] = ns;
    }
  }
  profile->messages = Strings(FindJsonValue(meta, "messages"));
}

// One line of a summary: a region, or work by name.
struct Row {
  std::string name;
  int64_t self_device_ns = 0;
  int64_t device_ns = 0;
  int64_t host_ns = 0;
  int64_t count = 0;
};

std::vector<Row> Rows(const TraceSummary& summary) {
  std::vector<Row> rows;
  for (const RegionSummary& region : summary.regions) {
    rows.push_back({absl::StrCat(kRegionSpanPrefix, region.name), 0,
                    region.kernel_ns + region.copy_ns + region.memset_ns,
                    region.host_ns, region.count});
  }
  std::map<std::string, Row> work;
  for (const GpuWorkRow& from : summary.work) {
    Row& row = work[from.name];
    row.name = from.name;
    row.self_device_ns += from.total_ns;
    row.device_ns += from.total_ns;
    row.count += from.count;
  }
  for (auto& [name, row] : work) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.self_device_ns > b.self_device_ns;
  });
  return rows;
}

absl::Status WriteSummaries(const std::string& path_stem,
                            const TraceSummary& summary) {
  const std::vector<Row> rows = Rows(summary);
  int64_t total = 0;
  for (const Row& row : rows) total += row.self_device_ns;
  std::string text;
  const std::string rule(110, '-');
  absl::StrAppend(&text, rule, "\n",
                  absl::StrFormat("%12s %8s %12s %12s %12s %10s  %s\n",
                                  "Self CUDA", "%", "CUDA total", "CUDA avg",
                                  "CPU total", "# of Calls", "Name"),
                  rule, "\n");
  for (size_t i = 0; i < std::min(rows.size(), kSummaryRows); ++i) {
    const Row& row = rows[i];
    absl::StrAppend(
        &text, absl::StrFormat(
                   "%10.3fms %7.2f%% %10.3fms %10.3fus %10.3fms %10d  %s\n",
                   row.self_device_ns * 1e-6,
                   total == 0 ? 0.0 : 100.0 * row.self_device_ns / total,
                   row.device_ns * 1e-6,
                   row.count == 0 ? 0.0 : row.device_ns * 1e-3 / row.count,
                   row.host_ns * 1e-6, row.count, row.name));
  }
  absl::StrAppend(
      &text, rule, "\n",
      absl::StrFormat("Self CUDA time total: %.3fms\n", total * 1e-6));
  FF_RETURN_IF_ERROR(WriteOutputFile(absl::StrCat(path_stem, ".txt"), text));

  // FastVideo's keys; shapes are not known outside of PyTorch.
  std::string out;
  JsonWriter json(&out);
  json.BeginArray();
  for (const Row& row : rows) {
    json.BeginObject();
    json.Key("name").String(row.name);
    json.Key("shapes").String("[]");
    json.Key("self_device_us").Double(row.self_device_ns * 1e-3);
    json.Key("device_us").Double(row.device_ns * 1e-3);
    json.Key("count").Int(row.count);
    json.EndObject();
  }
  json.EndArray();
  out += "\n";
  return WriteOutputFile(absl::StrCat(path_stem, ".json"), out);
}

}  // namespace

absl::StatusOr<FinalizedProfile> FinalizeProfile(
    const std::string& stem, const FinalizeOptions& options) {
  FinalizedProfile profile;
  profile.stem = stem;
  profile.stream_path = absl::StrCat(stem, ".pftrace");
  profile.trace_path = absl::StrCat(stem, ".pt.trace.json.gz");
  const std::string meta = ReadAll(absl::StrCat(stem, ".meta.json"));
  ReadMeta(meta, &profile);
  KinetoHeader header;
  header.rank = profile.rank;
  header.world_size = std::max<int64_t>(IntMember(meta, "world_size"), 1);
  if (!options.steps.empty()) header.steps = options.steps;
  header.host_name = TextMember(meta, "host_name");
  header.process_name = profile.process_name;
  const absl::string_view devices = FindJsonValue(meta, "device_properties");
  if (!devices.empty()) header.device_properties = std::string(devices);
  FF_RETURN_IF_ERROR(
      WriteKinetoTrace(profile.stream_path, header, profile.trace_path));
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(profile.stream_path));
  FF_ASSIGN_OR_RETURN(profile.summary, AnalyzeTrace(*reader, {}));
  const std::string summary_stem =
      absl::StrCat(std::filesystem::path(stem).parent_path().native(),
                   "/summary_rank", profile.rank,
                   options.taken_ranks.count(profile.rank) == 0
                       ? ""
                       : absl::StrCat("_", profile.pid));
  FF_RETURN_IF_ERROR(WriteSummaries(summary_stem, profile.summary));
  profile.summary_path = absl::StrCat(summary_stem, ".txt");
  return profile;
}

std::vector<std::string> FindProfiles(const std::string& dir,
                                      int64_t since_ns) {
  std::vector<std::string> stems;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string path = entry.path().native();
    constexpr absl::string_view kEnding = ".pftrace";
    if (!absl::EndsWith(path, kEnding)) continue;
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) continue;
    const int64_t changed =
        int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    if (changed >= since_ns) {
      stems.push_back(path.substr(0, path.size() - kEnding.size()));
    }
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

}  // namespace firstframe
