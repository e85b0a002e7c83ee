// conv_benchmark: times the convolutions of the Wan 2.1 decoder at 480 x 832 on
// a GPU, best of three times five, in every math mode.

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/wan_vae/cuda/conv_case.h"
#include "lib/wan_vae/cuda/math_mode.h"

namespace firstframe::cuda {
namespace {

using testing::ConvBench;
using testing::ConvCase;

const ConvCase kLayers[] = {
    {"L3 96to96 n", 480, 832, 96, 96, 3, 3, Resample::kNone, false, false,
     true},
    {"L3 96to96 r n", 480, 832, 96, 96, 3, 3, Resample::kNone, false, true,
     true},
    {"L3 96to96", 480, 832, 96, 96},
    {"L3 up 192to96", 480, 832, 192, 96, 1, 3, Resample::kUp},
    {"L3 out 96to3", 480, 832, 96, 3, 3, 3, Resample::kNone, true},
    {"L2 192to192 n", 240, 416, 192, 192, 3, 3, Resample::kNone, false, false,
     true},
    {"L2 192to192 r", 240, 416, 192, 192, 3, 3, Resample::kNone, false, true},
    {"L2 up 384to192", 240, 416, 384, 192, 1, 3, Resample::kUp},
    {"L1 384to384 x1", 120, 208, 384, 384},
    {"L1 384to384 x2", 120, 208, 384, 384, 3, 3, Resample::kNone, false, false,
     false, 2},
    {"L1 384to384 x2 n", 120, 208, 384, 384, 3, 3, Resample::kNone, false,
     false, true, 2},
    {"L1 1x1 192to384 x2", 120, 208, 192, 384, 1, 1, Resample::kNone, false,
     false, false, 2},
    {"L1 time 384to768 x2", 120, 208, 384, 768, 3, 1, Resample::kNone, false,
     false, false, 2},
    {"L0 384to384", 60, 104, 384, 384},
    {"L0 qkv", 60, 104, 384, 1152, 1, 1},
    {"L0 scores", 60, 104, 384, 6240, 1, 1},
    {"L0 values", 60, 104, 6240, 384, 1, 1},
};
absl::Status Time(const Stream& stream, const ConvCase& c, MathMode mode,
                  int multiprocessors) {
  FF_ASSIGN_OR_RETURN(ConvBench b,
                      ConvBench::Make(stream, c, mode, multiprocessors));
  FF_RETURN_IF_ERROR(b.Prepare(ConvKernelKind::kHopper));
  FF_ASSIGN_OR_RETURN(Event start, Event::Create(EventKind::kTiming));
  FF_ASSIGN_OR_RETURN(Event end, Event::Create(EventKind::kTiming));
  FF_RETURN_IF_ERROR(b.Launch());
  FF_RETURN_IF_ERROR(b.Launch());
  int64_t best = int64_t{1} << 60;
  for (int round = 0; round < 3; ++round) {
    constexpr int kRepeats = 5;
    FF_RETURN_IF_ERROR(start.Record(stream.handle()));
    for (int i = 0; i < kRepeats; ++i) FF_RETURN_IF_ERROR(b.Launch());
    FF_RETURN_IF_ERROR(end.Record(stream.handle()));
    FF_RETURN_IF_ERROR(end.Synchronize());
    FF_ASSIGN_OR_RETURN(const int64_t ns, Event::ElapsedNs(start, end));
    best = std::min(best, ns / kRepeats);
  }
  std::printf("time %-4s %-26s %8.3f ms %7.1f TFLOP/s\n",
              std::string(MathModeName(mode)).c_str(), c.name, best * 1e-6,
              b.Flops() / best * 1e-3);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run() {
  FF_RETURN_IF_ERROR(GetRuntime().SetDevice(0));
  FF_ASSIGN_OR_RETURN(const DeviceProperties device,
                      GetRuntime().GetProperties(0));
  FF_ASSIGN_OR_RETURN(const Stream stream, Stream::Create());
  for (const MathMode mode :
       {MathMode::kFp32, MathMode::kTf32, MathMode::kBf16}) {
    for (const ConvCase& c : kLayers) {
      FF_RETURN_IF_ERROR(
          Annotate(Time(stream, c, mode, device.multiprocessors), c.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace firstframe::cuda

int main() {
  const absl::Status status = firstframe::cuda::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "conv_benchmark: %s\n", status.ToString().c_str());
  return status.code() == absl::StatusCode::kUnavailable ? 3 : 2;
}
