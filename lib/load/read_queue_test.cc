#include "lib/load/read_queue.h"

#include <stdlib.h>

#include <cstring>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "lib/load/direct_io.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

constexpr size_t kSlot = 64 * 1024;
constexpr int kSlots = 4;

class ReadQueueTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    memory_.reset(
        static_cast<std::byte*>(::aligned_alloc(4096, kSlot * kSlots)));
    if (GetParam()) {
      auto queue = MakeUringQueue(memory_.get(), kSlot, kSlots);
      if (absl::IsUnavailable(queue.status())) GTEST_SKIP() << queue.status();
      ASSERT_THAT(queue, IsOk());
      queue_ = *std::move(queue);
    } else {
      queue_ = MakePreadQueue(memory_.get(), kSlot, kSlots);
    }
  }

  std::string SlotText(int slot, size_t size) const {
    return std::string(
        reinterpret_cast<const char*>(memory_.get() + slot * kSlot), size);
  }

  struct Free {
    void operator()(std::byte* p) const { ::free(p); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::unique_ptr<ReadQueue> queue_;
};

TEST_P(ReadQueueTest, FillsSlotsWithSeveralInFlight) {
  TempDir dir;
  std::string text(20 * kSlot + 100, '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 13 + (i >> 12));
  }
  const std::string path = dir.Write("f", text);
  // Directly where the file system can, else through the cache.
  absl::StatusOr<DirectFile> direct = OpenDirect(path);
  absl::StatusOr<DataFile> file =
      direct.ok() ? std::move(direct->file) : DataFile::Open(path);
  ASSERT_THAT(file, IsOk());
  size_t next = 0;
  size_t at_of_slot[kSlots];
  const auto start = [&](int slot) {
    const size_t left = text.size() - next;
    const size_t least = std::min(kSlot, left);
    at_of_slot[slot] = next;
    ASSERT_THAT(queue_->Start(slot, *file, next, kSlot, least), IsOk());
    next += least;
  };
  for (int slot = 0; slot < kSlots; ++slot) start(slot);
  EXPECT_EQ(queue_->in_flight(), kSlots);
  int complete = 0;
  while (queue_->in_flight() > 0) {
    ASSERT_OK_AND_ASSIGN(const int slot, queue_->WaitOne());
    const size_t at = at_of_slot[slot];
    const size_t size = std::min(kSlot, text.size() - at);
    EXPECT_EQ(SlotText(slot, size), text.substr(at, size));
    ++complete;
    if (next < text.size()) start(slot);
  }
  EXPECT_EQ(complete, 21);
}

TEST_P(ReadQueueTest, EndOfFileIsTyped) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       DataFile::Open(dir.Write("f", std::string(5000, 'x'))));
  ASSERT_THAT(queue_->Start(1, file, 4096, 4096, 2000), IsOk());
  EXPECT_THAT(queue_->WaitOne(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("wanted 2000 at byte 4096, got 904")));
  ASSERT_THAT(queue_->Start(1, file, 4096, 4096, 904), IsOk());
  EXPECT_THAT(queue_->WaitOne(), IsOk());
}

TEST_P(ReadQueueTest, AbandonedReadsAreWaitedFor) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      const DataFile file,
      DataFile::Open(dir.Write("f", std::string(4 * kSlot, 'x'))));
  for (int slot = 0; slot < kSlots; ++slot) {
    ASSERT_THAT(queue_->Start(slot, file, slot * kSlot, kSlot, kSlot), IsOk());
  }
  queue_.reset();
}

INSTANTIATE_TEST_SUITE_P(Methods, ReadQueueTest, ::testing::Values(false, true),
                         [](const auto& info) {
                           return std::string(info.param ? "Uring" : "Pread");
                         });

}  // namespace
}  // namespace firstframe
