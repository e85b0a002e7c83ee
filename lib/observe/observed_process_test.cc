#include "lib/observe/observed_process.h"

#include <cstring>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

// An event file as the library in a process writes it.
class FakeEventFile {
 public:
  FakeEventFile() : bytes_(sizeof(EventHeader), '\0') {
    EventHeader& header = Header();
    std::memcpy(header.magic, kEventMagic, sizeof(kEventMagic));
    header.pid = 42;
    header.start_ns = 1000;
    header.main_ns = 1500;
    constexpr char kCommand[] = "python\0train.py";
    std::memcpy(header.command, kCommand, sizeof(kCommand));
    header.command_size = sizeof(kCommand);
  }

  void Add(EventKind kind, std::string name, int64_t start_ns, int64_t end_ns,
           uint64_t value, uint32_t slot = 0) {
    const size_t size = (sizeof(EventRecord) + name.size() + 7) / 8 * 8;
    const auto record = std::make_unique<EventRecord>();
    record->size = size;
    record->tid = 42;
    record->kind = kind;
    record->name_size = name.size();
    record->slot = slot;
    record->start_ns = start_ns;
    record->end_ns = end_ns;
    record->value = value;
    std::string bytes(reinterpret_cast<char*>(record.get()), sizeof(*record));
    bytes += name;
    bytes.resize(size);
    bytes_ += bytes;
    Header().used += size;
  }

  EventHeader& Header() {
    return *reinterpret_cast<EventHeader*>(bytes_.data());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

TEST(EventFile, ReadsBack) {
  FakeEventFile file;
  file.Add(EventKind::kDlopen, "/lib/libx.so", 2000, 3000, 4);
  file.Add(EventKind::kFile, "m.safetensors", 4000, 4001, 99, /*slot=*/2);
  file.Header().files[1].read_bytes = 77;
  file.Header().cuda[kCudaPin].calls = 3;
  ASSERT_OK_AND_ASSIGN(const ObservedProcess process,
                       ParseEventFile(file.bytes()));
  EXPECT_EQ(process.pid, 42);
  EXPECT_EQ(process.main_ns, 1500);
  EXPECT_THAT(process.command, ::testing::ElementsAre("python", "train.py"));
  ASSERT_EQ(process.events.size(), 2u);
  EXPECT_EQ(process.events[0].name, "/lib/libx.so");
  EXPECT_EQ(process.events[0].end_ns, 3000);
  ASSERT_EQ(process.files.size(), 1u);
  EXPECT_EQ(process.files[0].read_bytes, 77u);
  EXPECT_EQ(process.cuda[kCudaPin].calls, 3u);
}

TEST(EventFile, BrokenOffAtAnyByteYieldsWhatPrecedes) {
  FakeEventFile file;
  for (int i = 0; i < 5; ++i) {
    file.Add(EventKind::kRegion, "range", 10 * i, 10 * i + 5, 0);
  }
  const std::string& bytes = file.bytes();
  size_t most = 0;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const auto process = ParseEventFile(bytes.substr(0, size));
    if (size < sizeof(EventHeader)) {
      EXPECT_THAT(process, StatusIs(absl::StatusCode::kDataLoss,
                                    HasSubstr("without the mark")));
      continue;
    }
    ASSERT_TRUE(process.ok());
    EXPECT_GE(process->events.size(), most);
    most = process->events.size();
  }
  EXPECT_EQ(most, 5u);
}

TEST(EventFile, HostileSizesAreNotFollowed) {
  for (const uint32_t size : {1u, 39u, 44u, 0xFFFFFFF8u}) {
    FakeEventFile file;
    file.Add(EventKind::kRegion, "range", 1, 2, 0);
    std::string bytes = file.bytes();
    std::memcpy(bytes.data() + sizeof(EventHeader), &size, sizeof(size));
    EXPECT_TRUE(ParseEventFile(bytes)->events.empty()) << size;
  }
  FakeEventFile file;
  file.Add(EventKind::kFile, "m.bin", 1, 2, 0, /*slot=*/4'000'000'000);
  file.Header().used = ~uint64_t{0};
  file.Header().command_size = 1 << 30;
  EXPECT_EQ(ParseEventFile(file.bytes())->files.size(), 1u);
}

TEST(ImportLog, ReadsItsLinesAndLeavesOutOthers) {
  ObservedProcess process;
  ParseImportLog(
      "B 100\nI 7 110 150 torch._C\nI 7 110 150\nI 7 x 150 a\nI 7 150 110 b\n"
      "I 7 105 200 name with spaces\nA 300\nI 7 9",
      &process);
  EXPECT_EQ(process.python_start_ns, 100);
  EXPECT_EQ(process.python_exit_ns, 300);
  ASSERT_EQ(process.imports.size(), 2u);
  EXPECT_EQ(process.imports[0].module, "torch._C");
  EXPECT_EQ(process.imports[1].module, "name with spaces");
}

TEST(ObservedProcesses, LogsGoToTheLastImageOfTheirPid) {
  const testing::TempDir dir;
  FakeEventFile first, second;
  second.Header().start_ns = 5000;
  dir.Write("events.42.1000.bin", first.bytes());
  dir.Write("events.42.5000.bin", second.bytes());
  dir.Write("events.43.1.bin", "rubbish");
  dir.Write("imports.42.6000.log", "B 6000\n");
  std::vector<std::string> problems;
  const auto processes = ReadObservedProcesses(dir.path(), &problems);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].python_start_ns, 0);
  EXPECT_EQ(processes[1].python_start_ns, 6000);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], HasSubstr("events.43.1.bin: found 7 bytes"));
}

}  // namespace
}  // namespace firstframe
