#include "lib/trace/trace_reader.h"

#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/perfetto/trace_writer.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/trace/json_scan.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Read {
  std::vector<std::string> names;
  TraceFileInfo info;

  int64_t Count(TraceOddity oddity) const { return info.oddity(oddity).count; }
  std::vector<std::string> Oddities() const {
    std::vector<std::string> names;
    for (int i = 0; i < kTraceOddityCount; ++i) {
      if (info.oddities[i].count > 0) {
        names.push_back(TraceOddityName(static_cast<TraceOddity>(i)));
      }
    }
    return names;
  }
};

Read ReadAll(const std::string& text, const std::string& name = "t.json") {
  const TempDir dir;
  Read read;
  auto reader = TraceReader::Open(dir.Write(name, text));
  if (!reader.ok()) {
    read.names.push_back(std::string(reader.status().message()));
    return read;
  }
  for (TraceEvent event;;) {
    const absl::StatusOr<bool> more = (*reader)->Next(&event);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) break;
    read.names.push_back(DecodeJsonString(event.name));
  }
  read.info = (*reader)->info();
  return read;
}

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

constexpr char kKineto[] = R"(
{
  "schemaVersion": 1,
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceEvents": [
  {
    "ph": "X", "cat": "kernel", "name": "k<a, \"b\">", "pid": 0, "tid": 7,
    "ts": 5106602237299.781, "dur": 1.5,
    "args": {"correlation": 12, "stream": 7, "Input Dims": [[1, "]"]]}
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "Spans", "tid": "", "ts": 2
  }
  ],
  "traceName": "/tmp/x.json",
  "baseTimeNanoseconds": 1790857026000000000
}
)";

TEST(TraceReader, ReadsKinetoAndWhatFollowsTheEvents) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(auto reader,
                       TraceReader::Open(dir.Write("t.json", kKineto)));
  TraceEvent event;
  ASSERT_TRUE(*reader->Next(&event));
  EXPECT_EQ(event.phase, 'X');
  EXPECT_EQ(event.kind, TraceEventKind::kKernel);
  EXPECT_EQ(DecodeJsonString(event.name), "k<a, \"b\">");
  EXPECT_TRUE(event.name_is_escaped);
  EXPECT_EQ(event.pid, 0);
  EXPECT_EQ(event.tid, 7);
  EXPECT_EQ(event.time_ns, 5106602237299781);
  EXPECT_EQ(event.duration_ns, 1500);
  EXPECT_EQ(std::string(FindJsonValue(event.args, "correlation")), "12");
  EXPECT_EQ(event.raw.front(), '{');
  EXPECT_EQ(event.raw.back(), '}');
  ASSERT_TRUE(*reader->Next(&event));
  EXPECT_EQ(std::string(event.pid_text), "Spans");
  EXPECT_LT(event.pid, 0);
  EXPECT_FALSE(event.has_duration);
  EXPECT_FALSE(*reader->Next(&event));
  EXPECT_FALSE(*reader->Next(&event)) << "again at the end";
  EXPECT_EQ(reader->info().Rank(), 3);
  EXPECT_EQ(reader->info().base_time_ns, 1790857026000000000);
  EXPECT_EQ(std::string(reader->info().Metadata("traceName")),
            "\"/tmp/x.json\"");
  EXPECT_EQ(reader->info().event_count, 2);
}

TEST(TraceReader, EveryPrefixIsReadAsFarAsItGoes) {
  const std::string text = kKineto;
  for (size_t n = 2; n < text.size() - 2; ++n) {
    const Read read = ReadAll(text.substr(0, n));
    EXPECT_EQ(read.Count(TraceOddity::kTruncated), 1) << n;
    EXPECT_LE(read.names.size(), 2u);
  }
  EXPECT_THAT(ReadAll(text).Oddities(), IsEmpty());
}

// Each is a fault found in the wild (docs/formats/trace_oddities.md).
TEST(TraceReader, TakesWhatTracersWrite) {
  const auto event = [](const std::string& name) {
    return "{\"ph\":\"X\",\"name\":\"" + name + "\",\"ts\":1,\"dur\":2}";
  };
  struct Case {
    const char* what;
    std::string text;
    std::vector<std::string> names;
    std::vector<std::string> oddities;
  };
  const std::vector<Case> cases = {
      {"bare array", "[" + event("a") + "]", {"a"}, {}},
      {"cut bare array", "[\n" + event("a") + ",\n", {"a"}, {"truncated"}},
      {"byte order mark", "\xef\xbb\xbf[" + event("a") + "]", {"a"}, {}},
      {"control character",
       "[" + event("a\x01z") + "]",
       {"a\x01z"},
       {"control_character"}},
      {"line end in a name",
       "[" + event("a\nz") + "]",
       {"a\nz"},
       {"control_character"}},
      {"undecodable byte",
       "[" + event("a\xffz") + "]",
       {"a\xffz"},
       {"invalid_utf8"}},
      {"unicode", "[" + event("\xe8\xa7\xa3") + "]", {"\xe8\xa7\xa3"}, {}},
      {"quotes in a name",
       "[" + event("f(\"x\") y") + "," + event("b") + "]",
       {"f(\"x\") y", "b"},
       {"inner_quote"}},
      {"Windows path",
       "[" + event("C:\\Users\\me") + "]",
       {"C:\\Users\\me"},
       {}},
      {"leading and trailing comma",
       "[," + event("a") + ",]",
       {"a"},
       {"extra_comma"}},
      {"no comma",
       "[" + event("a") + event("b") + "]",
       {"a", "b"},
       {"missing_comma"}},
      {"bare nan",
       R"([{"ph":"C","name":"a","ts":"5","args":{"v":nan}}])",
       {"a"},
       {"time_is_text"}},
      {"bare N/A as a field",
       R"([{"ph":"X","name":"a","ts":5,"x":N/A,"dur":NaN}])",
       {"a"},
       {"bare_word"}},
      {"missing opening quote",
       R"([{"ph":"X",name":"a","ts":5}])",
       {"a"},
       {"missing_key_quote"}},
      {"empty args array",
       R"([{"ph":"X","name":"a","ts":5,"args":[]}])",
       {"a"},
       {}},
      {"cut token in the middle",
       "[" + event("a") + ",{\"ph\":\"X\",\"na\nme:\"b\",\"ts\":}," +
           event("c") + "]",
       {"a", "c"},
       {"malformed_event"}},
      {"unknown top-level members",
       R"({"x":[{"name":"no"}],"traceEvents":[)" + event("a") +
           R"(],"y":{"traceEvents":[]}})",
       {"a"},
       {}},
      {"empty events", R"({"traceEvents":[]})", {}, {}},
      {"text after the end",
       "[" + event("a") + "] x",
       {"a"},
       {"trailing_data"}},
      {"an item that is no event",
       "[1, \"x\", " + event("a") + "]",
       {"a"},
       {"malformed_event"}},
  };
  for (const Case& c : cases) {
    const Read read = ReadAll(c.text);
    EXPECT_EQ(read.names, c.names) << c.what;
    EXPECT_EQ(read.Oddities(), c.oddities) << c.what;
  }
}

TEST(TraceReader, Gzip) {
  const std::string packed = Gzip(kKineto);
  EXPECT_EQ(ReadAll(packed, "t.json.gz").names.size(), 2u);
  // Two members, as a writer that appends makes them.
  const std::string half = kKineto;
  const std::string two = Gzip(half.substr(0, 300)) + Gzip(half.substr(300));
  EXPECT_EQ(ReadAll(two).names.size(), 2u);
  EXPECT_THAT(ReadAll(two).Oddities(), IsEmpty());
  for (size_t n = 2; n < packed.size(); ++n) {
    const Read read = ReadAll(packed.substr(0, n));
    if (!read.info.path.empty()) {
      EXPECT_EQ(read.Count(TraceOddity::kTruncatedGzip), 1) << n;
    }
  }
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x5a;
  EXPECT_GE(ReadAll(damaged).Count(TraceOddity::kTruncatedGzip), 1);
}

TEST(TraceReader, RefusesWhatIsNoTrace) {
  const TempDir dir;
  EXPECT_THAT(TraceReader::Open(dir.Write("e", "")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("empty")));
  EXPECT_THAT(TraceReader::Open(dir.Write("e", "hello")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0x68")));
  EXPECT_THAT(TraceReader::Open(dir.File("absent")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
  EXPECT_THAT(
      TraceReader::Open(dir.path()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("folder")));
}

TEST(TraceReader, AnObjectWithoutEventsIsNoTrace) {
  const TempDir dir;
  const auto next = [&](const std::string& text) {
    auto reader = TraceReader::Open(dir.Write("t.json", text));
    EXPECT_TRUE(reader.ok());
    TraceEvent event;
    return (*reader)->Next(&event).status();
  };
  EXPECT_THAT(next(R"({})"), StatusIs(absl::StatusCode::kDataLoss,
                                      HasSubstr("t.json: not a trace: expected "
                                                "an object with a list "
                                                "traceEvents")));
  EXPECT_THAT(next(R"({"a": 1, "b": {"traceEvents": []}})"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("found an object of a, b")));
  EXPECT_THAT(next(R"({"traceEvents": null})"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("traceEvents is not a list")));
  EXPECT_THAT(
      next(R"({"schema": {"name": "firstframe.profile", "version": 1}})"),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("its trace is the .pt.trace.json.gz beside it")));
  EXPECT_THAT(next(R"({"traceEvents": []})"), IsOk());
  EXPECT_THAT(next("[]"), IsOk());
  EXPECT_THAT(next(R"({"traceEv)"), IsOk()) << "cut off: an oddity";
}

TEST(TraceReader, ReadsPerfetto) {
  std::string bytes;
  TraceWriter writer(&bytes);
  const uint64_t process = writer.AddProcess(42, "prog");
  const uint64_t thread = writer.AddThread(process, 42, 43, "main");
  const uint64_t stream = writer.AddTrack("stream 7", 0);
  const TraceAnnotation annotations[] = {{"correlation", int64_t{9}},
                                         {"device", int64_t{1}},
                                         {"stream", int64_t{7}}};
  writer.BeginSlice(thread, 1000, "outer", {.category = "user_annotation"});
  writer.BeginSlice(stream, 1500, "kern",
                    {.category = "kernel", .annotations = annotations});
  writer.EndSlice(stream, 1700);
  writer.EndSlice(thread, 3000);
  writer.BeginSlice(thread, 4000, "open");
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(auto reader,
                       TraceReader::Open(dir.Write("t.pftrace", bytes)));
  std::vector<std::string> seen;
  for (TraceEvent e; *reader->Next(&e);) {
    seen.push_back(absl::StrCat(absl::string_view(&e.phase, 1), " ", e.name,
                                " ", e.pid, "/", e.tid, " ", e.time_ns, "+",
                                e.duration_ns, " ", e.args));
  }
  EXPECT_THAT(seen,
              ElementsAre("M process_name 42/0 0+0 {\"name\":\"prog\"}",
                          "M thread_name 42/43 0+0 {\"name\":\"main\"}",
                          "X kern 1/7 1500+200 "
                          "{\"correlation\":9,\"device\":1,\"stream\":7}",
                          "X outer 42/43 1000+2000 ", "B open 42/43 4000+0 "));
  std::string packed;
  AppendCompressedPackets(bytes, &packed);
  EXPECT_EQ(ReadAll(packed).names.size(), 5u);
  for (size_t n = 1; n < bytes.size(); ++n) {
    EXPECT_LE(ReadAll(bytes.substr(0, n)).names.size(), 5u);
    std::string flipped = bytes;
    flipped[n] ^= 0xff;
    ReadAll(flipped);
  }
}

TEST(TraceReader, CountsTheCorpus) {
  const char* const corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  const std::pair<const char*, int64_t> kFiles[] = {
      {"hta_cpu_only_rank-34.pt.trace.json.gz", 30},
      {"tracelens_h100_bert-small.json.gz", 2551},
      {"tracelens_xdit_flux1_profile_rank_0.json.gz", 229459},
  };
  for (const auto& [name, events] : kFiles) {
    ASSERT_OK_AND_ASSIGN(
        auto reader, TraceReader::Open(absl::StrCat(corpus, "/kineto/", name)));
    TraceEvent event;
    while (*reader->Next(&event)) {
    }
    EXPECT_EQ(reader->info().event_count, events) << name;
    for (int i = 0; i < kTraceOddityCount; ++i) {
      EXPECT_EQ(reader->info().oddities[i].count, 0)
          << name << " " << TraceOddityName(static_cast<TraceOddity>(i));
    }
  }
}

}  // namespace
}  // namespace firstframe
