#include "lib/activation/merge_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace firstframe {
namespace {

using Value = TraceRecord::Value;

// The worst kind of the parts; numbers only when all are.
ValueKind JoinKinds(const std::vector<TraceRecord>& parts, TraceValue value) {
  ValueKind joined = ValueKind::kNumber;
  for (const TraceRecord& part : parts) {
    const ValueKind kind = part.values[value].kind;
    if (kind == ValueKind::kMissing) return kind;
    if (kind != ValueKind::kNumber) {
      joined = joined == ValueKind::kNumber || joined == kind ? kind
                                                              : ValueKind::kNan;
    }
  }
  return joined;
}

std::optional<double> AddCounts(const std::vector<TraceRecord>& parts,
                                std::optional<double> TraceRecord::*count) {
  double sum = 0;
  for (const TraceRecord& part : parts) {
    if (!(part.*count)) return std::nullopt;
    sum += *(part.*count);
  }
  return sum;
}

// Sums of squares about the joint mean, from means and Bessel-corrected stds.
double JoinStd(const std::vector<TraceRecord>& parts,
               const std::vector<double>& n, double total, double mean) {
  double m2 = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double std = parts[i].values[kStd].number;
    const double delta = parts[i].values[kMean].number - mean;
    m2 += std * std * (n[i] - 1) + delta * delta * n[i];
  }
  return total > 1 ? std::sqrt(m2 / (total - 1)) : 0;
}

void JoinExtras(const std::vector<TraceRecord>& parts, double total,
                TraceRecord* out) {
  out->numel = total;
  for (const auto count : {&TraceRecord::nan, &TraceRecord::inf_pos,
                           &TraceRecord::inf_neg, &TraceRecord::zero}) {
    out->*count = AddCounts(parts, count);
  }
  uint64_t h_set = 0;
  double squares = 0;
  bool has_set = true, has_rms = true;
  std::map<int, int64_t> exponents;
  for (const TraceRecord& part : parts) {
    has_set &= part.h_set.has_value();
    h_set += part.h_set.value_or(0);
    has_rms &= part.rms && part.numel;
    squares +=
        part.rms.value_or(0) * part.rms.value_or(0) * part.numel.value_or(0);
    for (const auto& [bin, count] : part.exponents) exponents[bin] += count;
  }
  if (has_set) out->h_set = h_set;
  if (has_rms && total > 0) out->rms = std::sqrt(squares / total);
  out->exponents.assign(exponents.begin(), exponents.end());
}

TraceRow RowOf(const TraceRecord& record, TraceRow row) {
  row.shape = 0;
  row.flags = TraceRow::kHasExtras;
  for (int i = 0; i < kNumTraceValues; ++i) {
    const Value& value = record.values[i];
    if (value.kind == ValueKind::kNumber) {
      row.values[i] = static_cast<float>(value.number);
      row.flags |= TraceRow::kIsWide;
    } else {
      row.SetOdd(static_cast<TraceValue>(i), value.kind);
    }
  }
  return row;
}

}  // namespace

TraceRecord TraceSide::Record(uint32_t row) const {
  if (const auto found = merged.find(row); found != merged.end()) {
    return found->second;
  }
  return ReadRecord(table.text.substr(table.rows[row].offset));
}

double TraceSide::Numel(uint32_t row) const {
  if (const uint32_t shape = table.rows[row].shape; shape != 0) {
    return names->numel(shape);
  }
  if ((table.rows[row].flags & TraceRow::kHasExtras) == 0) return 0;
  return Record(row).numel.value_or(0);
}

TraceRecord MergeRecords(const std::vector<TraceRecord>& parts,
                         const std::vector<double>& numels) {
  std::vector<double> n = numels;
  const bool known =
      std::all_of(n.begin(), n.end(), [](double x) { return x > 0; });
  if (!known) std::fill(n.begin(), n.end(), 1.0);
  double total = 0;
  for (const double x : n) total += x;

  TraceRecord out;
  for (int i = 0; i < kNumTraceValues; ++i) {
    const TraceValue which = static_cast<TraceValue>(i);
    Value& value = out.values[i];
    value.kind = JoinKinds(parts, which);
    if (value.kind != ValueKind::kNumber) continue;
    value.number =
        which == kMin || which == kMax ? parts[0].values[i].number : 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      const double x = parts[k].values[i].number;
      if (which == kSum) value.number += x;
      if (which == kMin) value.number = std::min(value.number, x);
      if (which == kMax) value.number = std::max(value.number, x);
      if (which == kMean || which == kAbsMean) value.number += x * n[k] / total;
    }
  }
  Value& std = out.values[kStd];
  if (std.kind == ValueKind::kNumber) {
    if (known && out.values[kMean].kind == ValueKind::kNumber) {
      std.number = JoinStd(parts, n, total, out.values[kMean].number);
    } else {
      std.kind = ValueKind::kMissing;
    }
  }
  JoinExtras(parts, known ? total : 0, &out);
  if (!known) out.numel.reset();
  return out;
}

void MergeRowGroups(const std::vector<int32_t>& group_of,
                    const std::vector<int32_t>& sizes, TraceSide* side) {
  std::vector<std::vector<uint32_t>> members(sizes.size());
  for (uint32_t i = 0; i < group_of.size(); ++i) {
    if (group_of[i] >= 0) members[group_of[i]].push_back(i);
  }
  std::vector<TraceRow> rows;
  rows.reserve(side->table.rows.size());
  absl::flat_hash_map<uint32_t, TraceRecord> merged;
  for (uint32_t i = 0; i < group_of.size(); ++i) {
    const int32_t group = group_of[i];
    const bool whole = group >= 0 && static_cast<int32_t>(
                                         members[group].size()) == sizes[group];
    if (!whole) {
      if (const auto old = side->merged.find(i); old != side->merged.end()) {
        merged[static_cast<uint32_t>(rows.size())] = old->second;
      }
      rows.push_back(side->table.rows[i]);
      continue;
    }
    if (members[group].back() != i) continue;
    std::vector<TraceRecord> parts;
    std::vector<double> numels;
    for (const uint32_t member : members[group]) {
      parts.push_back(side->Record(member));
      numels.push_back(side->Numel(member));
      if (!parts.back().numel && numels.back() > 0) {
        parts.back().numel = numels.back();
      }
    }
    TraceRecord record = MergeRecords(parts, numels);
    rows.push_back(RowOf(record, side->table.rows[i]));
    merged[static_cast<uint32_t>(rows.size() - 1)] = std::move(record);
  }
  side->table.rows = std::move(rows);
  side->merged = std::move(merged);
}

}  // namespace firstframe
