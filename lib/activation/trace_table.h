// A trace in memory: one compact row a record, with names, shapes and dtypes
// interned. The text stays mapped and is read again for what a row leaves out.

#ifndef LIB_ACTIVATION_TRACE_TABLE_H_
#define LIB_ACTIVATION_TRACE_TABLE_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// The six numbers of FastVideo's records, in the order of TraceRow::values.
enum TraceValue { kAbsMean, kSum, kMin, kMax, kMean, kStd };
inline constexpr int kNumTraceValues = 6;
inline constexpr std::array<absl::string_view, kNumTraceValues>
    kTraceValueNames = {"abs_mean", "sum", "min", "max", "mean", "std"};

// What a record says where a number belongs.
enum class ValueKind : uint8_t {
  kMissing,
  kNumber,
  kNan,
  kPositiveInfinity,  // also DBL_MAX, which jq makes of it
  kNegativeInfinity,
  kNull,   // perhaps a NaN that passed through jq
  kError,  // a string: "<error: ...>"
};

inline constexpr int32_t kNoStep = std::numeric_limits<int32_t>::min();

// A place in a text. In two halves, so that a row needs no padding.
class TextOffset {
 public:
  constexpr TextOffset(uint64_t offset = 0)  // NOLINT: stands for a number
      : low_(static_cast<uint32_t>(offset)),
        high_(static_cast<uint32_t>(offset >> 32)) {}
  constexpr operator uint64_t() const {  // NOLINT: likewise
    return uint64_t{high_} << 32 | low_;
  }

 private:
  uint32_t low_, high_;
};

// 52 bytes. Order is the file's.
struct TraceRow {
  TextOffset offset;        // of the record's '{' in the text
  uint32_t key = 0;         // TraceNames: module and tensor
  int32_t step = kNoStep;   // or null
  uint32_t occurrence = 0;  // among rows of this key and step of the run
  uint32_t shape = 0;       // TraceNames; 0: none given
  std::array<float, kNumTraceValues> values = {};
  uint16_t segment = 0;  // TraceTable::segments
  uint8_t dtype = 0;     // TraceNames; 0: none given
  uint8_t flags = 0;

  // The line equals a line of the other file byte for byte; only key and step
  // were read. Which line: see IsPartner.
  static constexpr uint8_t kUnread = 1;
  // Has keys that the row does not hold.
  static constexpr uint8_t kHasExtras = 2;
  // A number is not a float32; the text has it exactly.
  static constexpr uint8_t kIsWide = 4;
  // Has a value that is not a finite number.
  static constexpr uint8_t kHasOdd = 8;

  ValueKind Kind(TraceValue value) const {
    if ((flags & kUnread) != 0) return ValueKind::kMissing;
    const float number = values[value];
    return std::abs(number) <= std::numeric_limits<float>::max()
               ? ValueKind::kNumber
               : OddKind(number);
  }
  void SetOdd(TraceValue value, ValueKind kind);  // anything but kNumber

  // Makes the row an unread one. The two equal lines get the same number.
  void SetUnread(uint32_t line);
  // Whether this and `other`, of the other file, are unread and equal lines.
  bool IsPartner(const TraceRow& other) const {
    return (flags & other.flags & kUnread) != 0 &&
           std::memcmp(&values[kSum], &other.values[kSum], 4) == 0;
  }

 private:
  static ValueKind OddKind(float number);  // of a number that is not finite
};
static_assert(sizeof(TraceRow) == 52);

// Names shared by the traces that are compared, so that equal names have equal
// numbers. Thread-compatible.
class TraceNames {
 public:
  struct Key {
    std::string module;  // decoded
    std::string tensor;
    std::string raw_module;  // as between the quotes in the file
    std::string raw_tensor;
  };

  TraceNames();

  uint32_t InternKey(absl::string_view raw_module,
                     absl::string_view raw_tensor);
  uint32_t InternShape(const Shape& shape);
  uint8_t InternDtype(absl::string_view name);  // with or without "torch."

  const Key& key(uint32_t id) const { return keys_[id]; }
  size_t num_keys() const { return keys_.size(); }
  const Shape& shape(uint32_t id) const { return shapes_[id]; }
  // Number of elements; 0 when the shape is not given.
  double numel(uint32_t shape) const { return numels_[shape]; }
  const std::string& dtype(uint8_t id) const { return dtypes_[id]; }

 private:
  std::vector<Key> keys_;
  absl::flat_hash_map<std::string, uint32_t> key_ids_;
  std::vector<Shape> shapes_;
  std::vector<double> numels_;
  absl::flat_hash_map<Shape, uint32_t> shape_ids_;
  std::vector<std::string> dtypes_;
};

// Part of a file: what one process wrote.
struct TraceSegment {
  int32_t rank = -1;        // -1: not given
  std::string run;          // "rank"/"run" keys of the records
  uint32_t generation = 0;  // counts headers and steps that fall back
  bool operator==(const TraceSegment&) const = default;
};

// What was wrong with a file, by line number (from 1) of the first case.
struct TraceDamage {
  int64_t torn = 0;            // objects that broke off
  int64_t glued = 0;           // objects found behind another on a line
  int64_t foreign = 0;         // valid JSON without "module"
  int64_t duplicate_keys = 0;  // records that say a key twice: the last counts
  int64_t first_torn_line = 0;
  bool torn_at_end = false;  // the last line is half-written

  bool IsClean() const { return torn == 0 && foreign == 0; }
};

struct TraceTable {
  std::string name;
  absl::string_view text;  // borrowed
  std::vector<TraceRow> rows;
  std::vector<TraceSegment> segments;
  std::vector<std::string> headers;  // the {"trace_header": ...} records
  TraceDamage damage;
  int64_t num_lines = 0;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_TABLE_H_
