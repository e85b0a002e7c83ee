#include "lib/wan_vae/cuda/output_drain.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/cuda/memory.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe::cuda {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int64_t kPiece = 1000;
constexpr int64_t kRounds = 50;

class OutputDrainTest : public ::testing::Test {
 protected:
  // The two buffers, in "device" memory.
  float* Buffer(int which) {
    return reinterpret_cast<float*>(memory_.data()) + which * kPiece;
  }

  FakeCuda runtime_;
  const Stream compute_ = *Stream::Create(0, runtime_);
  const Stream copies_ = *Stream::Create(0, runtime_);
  const DeviceBuffer memory_ =
      *DeviceBuffer::Allocate(2 * kPiece * sizeof(float), runtime_);
};

TEST_F(OutputDrainTest, BringsEveryPieceToItsPlaceWhileBuffersTakeTurns) {
  std::vector<float> output;
  OutputDrain drain(0, copies_, 2, kRounds * kPiece, &output, runtime_);
  for (int64_t round = 0; round < kRounds; ++round) {
    const int buffer = static_cast<int>(round % 2);
    ASSERT_THAT(drain.Await(buffer), IsOk());
    std::fill_n(Buffer(buffer), kPiece, static_cast<float>(round));
    // In two parts, to the mirror image's place.
    const int64_t place = (kRounds - 1 - round) * kPiece;
    ASSERT_THAT(drain.Push(buffer,
                           {{Buffer(buffer), place, 1},
                            {Buffer(buffer) + 1, place + 1, kPiece - 1}},
                           compute_),
                IsOk());
  }
  ASSERT_THAT(drain.End(), IsOk());
  ASSERT_EQ(output.size(), static_cast<size_t>(kRounds * kPiece));
  for (int64_t i = 0; i < kRounds * kPiece; ++i) {
    ASSERT_EQ(output[i], static_cast<float>(kRounds - 1 - i / kPiece)) << i;
  }
}

TEST_F(OutputDrainTest, OfNothingStillSizesTheOutput) {
  std::vector<float> output;
  OutputDrain drain(0, copies_, 2, 7, &output, runtime_);
  ASSERT_THAT(drain.End(), IsOk());
  EXPECT_EQ(output.size(), 7u);
}

TEST_F(OutputDrainTest, AFailedCopyEndsTheRun) {
  std::vector<float> output;
  runtime_.FailNext("CopyAsync", absl::InternalError("copy engine"));
  OutputDrain drain(0, copies_, 2, 2 * kPiece, &output, runtime_);
  ASSERT_THAT(drain.Push(0, {{Buffer(0), 0, kPiece}}, compute_), IsOk());
  // The one who waits for the buffer hears of it, and does not wait for ever.
  EXPECT_THAT(drain.Await(0),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("copy engine")));
  EXPECT_THAT(drain.End(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("copy engine")));
}

TEST_F(OutputDrainTest, AnAbandonedRunEnds) {
  std::vector<float> output;
  std::optional<OutputDrain> drain(std::in_place, 0, copies_, 2, 2 * kPiece,
                                   &output, runtime_);
  ASSERT_THAT(drain->Push(0, {{Buffer(0), 0, kPiece}}, compute_), IsOk());
  ASSERT_THAT(drain->Push(1, {{Buffer(1), kPiece, kPiece}}, compute_), IsOk());
  drain.reset();
}

// More than any vector holds, so that no allocator is asked.
TEST_F(OutputDrainTest, AnOutputThatDoesNotFitIsAnError) {
  std::vector<float> output;
  OutputDrain drain(0, copies_, 2, int64_t{1} << 61, &output, runtime_);
  EXPECT_THAT(drain.End(), StatusIs(absl::StatusCode::kResourceExhausted,
                                    HasSubstr("no memory")));
}

}  // namespace
}  // namespace firstframe::cuda
