// Any bytes are read as a trace, analysed and repaired without a crash, and
// what the repair writes is read again without remark.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/trace/byte_source.h"
#include "lib/trace/json_rewrite.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t capacity) override {
    const size_t n = std::min(capacity, bytes_.size() - at_);
    std::memcpy(buffer, bytes_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

void Read(const std::string& bytes) {
  auto reader =
      TraceReader::FromSource(std::make_unique<MemorySource>(bytes), "fuzz");
  if (!reader.ok()) return;
  std::string clean = "[";
  for (TraceEvent event;;) {
    const auto more = (*reader)->Next(&event);
    if (!more.ok() || !*more) break;
    FF_CHECK(!event.raw.empty());
    if (clean.size() > 1) clean += ",";
    AppendCleanJson(event.raw, &clean);
  }
  clean += "]";
  auto again =
      TraceReader::FromSource(std::make_unique<MemorySource>(clean), "clean");
  FF_CHECK(again.ok());
  for (TraceEvent event;;) {
    const auto more = (*again)->Next(&event);
    FF_CHECK(more.ok());
    if (!*more) break;
  }
  for (const TraceOddity oddity :
       {TraceOddity::kMalformedEvent, TraceOddity::kControlCharacter,
        TraceOddity::kInvalidUtf8, TraceOddity::kBareWord,
        TraceOddity::kTruncated}) {
    FF_CHECK((*again)->info().oddity(oddity).count == 0);
  }
  FF_CHECK((*again)->info().event_count == (*reader)->info().event_count);
}

void Analyze(const std::string& bytes) {
  auto reader =
      TraceReader::FromSource(std::make_unique<MemorySource>(bytes), "fuzz");
  if (!reader.ok()) return;
  const auto summary = AnalyzeTrace(**reader, {.all_annotations = true});
  // A whole object without events is no trace.
  FF_CHECK(summary.ok() || absl::IsDataLoss(summary.status()));
}

}  // namespace
}  // namespace firstframe

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,)"
      R"("ts":12.5,"dur":3,"args":{"correlation":4,"stream":7,"g":[1,2]}},)"
      R"({"ph":"X","cat":"user_annotation","name":"fastvideo.region::a",)"
      R"("pid":1,"tid":1,"ts":1,"dur":50},{"ph":"B","name":"b","ts":"2"},)"
      R"({"ph":"E","ts":3}],"baseTimeNanoseconds":17,"x":{"y":"\u4e2d"}})",
      R"([{"ph":"X","name":"f("x") y","dur":NaN},])",
      R"({"schema":{"name":"firstframe.profile"},"traceEvents":7})",
      std::string("\x0a\x0c\x50\x01\x68\x02\x62\x06\x12\x04\x08\x01\x12\x00\x0a"
                  "\x0b\x40\x07\x50\x01\x5a\x05\x48\x01\x50\x01\x58",
                  27),
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  firstframe::Read(bytes);
  firstframe::Analyze(bytes);
  return 0;
}
