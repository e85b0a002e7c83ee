#include "lib/profiler/launch_join.h"

namespace firstframe {

void LaunchJoin::Hand(GpuWork work, uint32_t verdict, Take take) {
  work.region = verdict > kKept ? verdict - kKept : 0;
  take(work, verdict >= kKept);
}

void LaunchJoin::AddLaunch(uint32_t correlation, bool keep, uint32_t region,
                           Take take) {
  const uint32_t verdict = keep ? kKept + region : kOutside;
  launches_.Set(correlation, verdict);
  const auto found = waiting_.find(correlation);
  if (found == waiting_.end()) return;
  for (const GpuWork& work : found->second) Hand(work, verdict, take);
  waiting_count_ -= found->second.size();
  waiting_.erase(found);
  while (!order_.empty() && !waiting_.contains(order_.front().correlation)) {
    order_.pop_front();
  }
}

void LaunchJoin::AddWork(const GpuWork& work, int64_t now_ns, Take take) {
  if (const uint32_t verdict = launches_.Get(work.correlation); verdict != 0) {
    Hand(work, verdict, take);
    return;
  }
  while (waiting_count_ >= kMaxWaiting) GiveUpOldest(take);
  auto& waiting = waiting_[work.correlation];
  // A graph's launch has many: one place in the order for all.
  if (waiting.empty()) order_.push_back({work.correlation, now_ns});
  waiting.push_back(work);
  ++waiting_count_;
}

void LaunchJoin::GiveUpOldest(Take take) {
  const auto found = waiting_.find(order_.front().correlation);
  order_.pop_front();
  if (found == waiting_.end()) return;
  for (const GpuWork& work : found->second) take(work, keep_unknown_);
  waiting_count_ -= found->second.size();
  waiting_.erase(found);
}

void LaunchJoin::GiveUp(int64_t before_ns, Take take) {
  while (!order_.empty() && order_.front().time_ns < before_ns) {
    GiveUpOldest(take);
  }
}

}  // namespace firstframe
