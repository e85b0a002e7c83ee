#include "lib/activation/align_select.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

void Keep(TraceTable* table, const std::function<bool(uint16_t)>& wanted) {
  auto& rows = table->rows;
  rows.erase(
      std::remove_if(rows.begin(), rows.end(),
                     [&](const TraceRow& row) { return !wanted(row.segment); }),
      rows.end());
}

using RunKey = std::pair<std::string, uint32_t>;

// The runs that rows belong to, in the order of the file.
std::vector<RunKey> RunsOf(const TraceTable& table) {
  std::vector<bool> used(table.segments.size());
  if (used.size() == 1) {  // the usual file: no need to look at every row
    return table.rows.empty()
               ? std::vector<RunKey>()
               : std::vector<RunKey>{
                     {table.segments[0].run, table.segments[0].generation}};
  }
  for (const TraceRow& row : table.rows) used[row.segment] = true;
  std::vector<RunKey> runs;
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const RunKey key = {table.segments[i].run, table.segments[i].generation};
    if (std::find(runs.begin(), runs.end(), key) == runs.end()) {
      runs.push_back(key);
    }
  }
  return runs;
}

absl::Status SelectRun(const std::string& wanted, TraceTable* table,
                       std::vector<std::string>* warnings) {
  const std::vector<RunKey> runs = RunsOf(*table);
  if (runs.empty()) return absl::OkStatus();
  size_t chosen = runs.size() - 1;
  if (!wanted.empty()) {
    const auto by_name =
        std::find_if(runs.begin(), runs.end(),
                     [&](const RunKey& run) { return run.first == wanted; });
    if (by_name != runs.end()) {
      chosen = by_name - runs.begin();
    } else if (!absl::SimpleAtoi(wanted, &chosen) || chosen >= runs.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(table->name, ": no run '", wanted, "': found ",
                       runs.size(), " runs, counted from 0"));
    }
  } else if (runs.size() > 1) {
    warnings->push_back(
        absl::StrCat(table->name, " holds ", runs.size(),
                     " runs; the last is compared (--run=N chooses, from 0)"));
  }
  if (runs.size() > 1) {
    Keep(table, [&](uint16_t segment) {
      return table->segments[segment].run == runs[chosen].first &&
             table->segments[segment].generation == runs[chosen].second;
    });
  }
  return absl::OkStatus();
}

std::set<int> RanksOf(const TraceTable& table) {
  std::set<int> ranks;
  if (table.segments.size() == 1) return {table.segments[0].rank};
  for (const TraceRow& row : table.rows) {
    ranks.insert(table.segments[row.segment].rank);
  }
  return ranks;
}

void KeepRank(int rank, TraceTable* table) {
  Keep(table,
       [&](uint16_t segment) { return table->segments[segment].rank == rank; });
}

// Makes the rank no part of a record's identity.
void ForgetRanks(TraceTable* table) {
  for (TraceSegment& segment : table->segments) segment.rank = -1;
}

}  // namespace

absl::Status SelectRuns(const AlignOptions& options, TraceTable* a,
                        TraceTable* b, std::vector<std::string>* warnings) {
  for (TraceTable* const table : {a, b}) {
    FF_RETURN_IF_ERROR(SelectRun(options.run, table, warnings));
    if (!options.rank) continue;
    const std::set<int> ranks = RanksOf(*table);
    // A trace without ranks is what any rank is compared with.
    if (ranks == std::set<int>{-1}) continue;
    if (!ranks.contains(*options.rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat(table->name, ": no rank ", *options.rank, ": found ",
                       absl::StrJoin(ranks, ", ")));
    }
    KeepRank(*options.rank, table);
  }
  const std::set<int> ranks_a = RanksOf(*a), ranks_b = RanksOf(*b);
  if (!options.merge_ranks && ranks_a != ranks_b) {
    for (const auto& [table, ranks] :
         {std::pair(a, ranks_a), std::pair(b, ranks_b)}) {
      if (ranks.size() < 2) continue;
      warnings->push_back(absl::StrCat(
          table->name, " holds ", ranks.size(),
          " ranks and the other trace other ones; rank ", *ranks.begin(),
          " is compared (--rank=N chooses, --merge_ranks merges)"));
      KeepRank(*ranks.begin(), table);
    }
  }
  if (options.merge_ranks || ranks_a != ranks_b) {
    ForgetRanks(a);
    ForgetRanks(b);
  }
  return absl::OkStatus();
}

}  // namespace firstframe
