// Joins a device's work to the launch that made it, which CUPTI delivers apart
// and in any order.

#ifndef LIB_PROFILER_LAUNCH_JOIN_H_
#define LIB_PROFILER_LAUNCH_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "lib/profiler/correlation_map.h"
#include "lib/profiler/gpu_work.h"

namespace firstframe {

// Not thread-safe.
class LaunchJoin {
 public:
  // Takes work whose launch is known, with its region set, or whose launch will
  // not be known any more. `keep`: whether it belongs in the trace.
  using Take = absl::FunctionRef<void(const GpuWork&, bool keep)>;

  // `keep_unknown`: what becomes of work whose launch never comes.
  explicit LaunchJoin(bool keep_unknown) : keep_unknown_(keep_unknown) {}

  // A launch made in `region` (0: in none), whose work is kept or not. Hands
  // over the work that waited for it.
  void AddLaunch(uint32_t correlation, bool keep, uint32_t region, Take take);

  // Hands `work` over, or lets it wait for its launch.
  void AddWork(const GpuWork& work, int64_t now_ns, Take take);

  // Gives up on work that has waited since before `before_ns`.
  void GiveUp(int64_t before_ns, Take take);

  // Works that wait.
  size_t waiting_count() const { return waiting_count_; }

 private:
  // Works that wait: 40 MiB.
  static constexpr size_t kMaxWaiting = size_t{256} << 10;
  // Values of launches_: 0 not known yet, 1 outside, 2 kept, r + 2 in region r.
  static constexpr uint32_t kOutside = 1;
  static constexpr uint32_t kKept = 2;

  static void Hand(GpuWork work, uint32_t verdict, Take take);
  void GiveUpOldest(Take take);

  const bool keep_unknown_;
  CorrelationMap launches_;
  absl::flat_hash_map<uint32_t, std::vector<GpuWork>> waiting_;
  struct Arrival {
    uint32_t correlation;
    int64_t time_ns;
  };
  std::deque<Arrival> order_;  // oldest first; some are gone from waiting_
  size_t waiting_count_ = 0;
};

}  // namespace firstframe

#endif  // LIB_PROFILER_LAUNCH_JOIN_H_
