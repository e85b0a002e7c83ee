// The fields of VIDEOX_PERF records, each named once, and the two ways to read
// them. For perf_record_reader.cc alone.

#ifndef LIB_METRICS_PERF_RECORD_FIELDS_H_
#define LIB_METRICS_PERF_RECORD_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "lib/metrics/json_scanner.h"
#include "lib/metrics/perf_record.h"

namespace firstframe::perf_record_internal {

// Equality with a literal, of a size that the compiler knows.
template <size_t kSize>
inline bool Is(absl::string_view key, const char (&name)[kSize]) {
  return key.size() == kSize - 1 &&
         std::memcmp(key.data(), name, kSize - 1) == 0;
}

inline void Read(JsonScanner& scan, double& out) { scan.ReadDouble(out); }
inline void Read(JsonScanner& scan, std::optional<double>& out) {
  scan.ReadDouble(out);
}
inline void Read(JsonScanner& scan, int64_t& out) { scan.ReadInt(out); }
inline void Read(JsonScanner& scan, bool& out) { scan.ReadBool(out); }
inline void Read(JsonScanner& scan, std::string& out) { scan.ReadString(out); }

// Each object's fields in the order in which both programs write them, each
// with what stands before it: the object's brace, or another field.
#define FF_STAGE_FIELDS(X) \
  X(FIRST, count)          \
  X(NEXT, total_ms)        \
  X(NEXT, mean_ms) X(NEXT, std_ms) X(NEXT, min_ms) X(NEXT, max_ms)
#define FF_DIT_FIELDS(X) \
  X(FIRST, params)       \
  X(NEXT, tokens)        \
  X(NEXT, batch)         \
  X(NEXT, devices)       \
  X(NEXT, flops_per_fwd) \
  X(NEXT, attn_share)    \
  X(NEXT, tflops)        \
  X(NEXT, peak_tflops)   \
  X(NEXT, mfu)
#define FF_VAE_FIELDS(X)   \
  X(FIRST, flops_per_call) \
  X(NEXT, calls)           \
  X(NEXT, tflops)          \
  X(NEXT, peak_tflops)     \
  X(NEXT, mfu)
#define FF_THROUGHPUT_FIELDS(X) \
  X(FIRST, samples_per_s)       \
  X(NEXT, samples)              \
  X(NEXT, wall_s)               \
  X(NEXT, dp)
#define FF_PRICED_FIELDS(X)  \
  X(NEXT, params)            \
  X(NEXT, trainable)         \
  X(NEXT, tokens)            \
  X(NEXT, priced_steps)      \
  X(NEXT, priced_s)          \
  X(NEXT, flops_coef)        \
  X(NEXT, flops_coef_hw)     \
  X(NEXT, flops_coef_reason) \
  X(NEXT, flops_per_step)    \
  X(NEXT, attn_share)        \
  X(NEXT, devices)           \
  X(NEXT, tflops)            \
  X(NEXT, hw_tflops)         \
  X(NEXT, peak_tflops)       \
  X(NEXT, mfu)               \
  X(NEXT, hfu)
#define FF_REQUEST_FIELDS(X) \
  X(NEXT, ts)                \
  X(NEXT, rank)              \
  X(NEXT, world_size)        \
  X(NEXT, req)               \
  X(NEXT, warmup)            \
  X(NEXT, e2e_s)
#define FF_WINDOW_FIELDS(X) \
  X(NEXT, ts)               \
  X(NEXT, rank)             \
  X(NEXT, world_size)       \
  X(NEXT, step_first)       \
  X(NEXT, step_last)        \
  X(NEXT, steps)            \
  X(NEXT, warmup_excluded)  \
  X(NEXT, step_s_p50)       \
  X(NEXT, step_s_p95)

// Reads the field into `target` when `key` names it.
#define FF_READ(before, field) \
  if (Is(key, #field)) {       \
    Read(scan, target.field);  \
    return true;               \
  }
// A key with what stands before it, as Python writes it and as this project
// does.
#define FF_SPACED_FIRST "{"
#define FF_COMPACT_FIRST "{"
#define FF_SPACED_NEXT ", "
#define FF_COMPACT_NEXT ","
#define FF_CONSUME(scan, before, field)                         \
  (scan).ConsumeExpected(FF_SPACED_##before "\"" #field "\": ", \
                         FF_COMPACT_##before "\"" #field "\":")
// Reads the field when it comes next, else stops guessing. Returns whether
// there was any.
#define FF_EXPECT(before, field)                          \
  if (!FF_CONSUME(scan, before, field)) return has_begun; \
  has_begun = true;                                       \
  Read(scan, target.field);

// ReadField reads the field `key` when it is one of the record's.
// ReadExpected reads those that come as they are expected: a comparison each,
// where ReadField takes several. Both leave the rest to the caller.
#define FF_DEFINE_READERS(Record, FIELDS)                         \
  inline bool ReadField(absl::string_view key, JsonScanner& scan, \
                        Record& target) {                         \
    FIELDS(FF_READ)                                               \
    return false;                                                 \
  }                                                               \
  inline bool ReadExpected(JsonScanner& scan, Record& target) {   \
    bool has_begun = false;                                       \
    FIELDS(FF_EXPECT)                                             \
    return has_begun;                                             \
  }

FF_DEFINE_READERS(StageSummary, FF_STAGE_FIELDS)
FF_DEFINE_READERS(DitThroughput, FF_DIT_FIELDS)
FF_DEFINE_READERS(VaeThroughput, FF_VAE_FIELDS)
FF_DEFINE_READERS(WindowThroughput, FF_THROUGHPUT_FIELDS)
FF_DEFINE_READERS(PricedThroughput, FF_PRICED_FIELDS)
FF_DEFINE_READERS(RequestRecord, FF_REQUEST_FIELDS)
FF_DEFINE_READERS(TrainWindowRecord, FF_WINDOW_FIELDS)

#undef FF_DEFINE_READERS
#undef FF_EXPECT
#undef FF_READ

}  // namespace firstframe::perf_record_internal

#endif  // LIB_METRICS_PERF_RECORD_FIELDS_H_
