#include "lib/startup/offload_cycles.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/string_view.h"
#include "lib/base/status_macros.h"
#include "lib/offload/frozen_store.h"
#include "lib/phase/phase.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

bool HasSameBits(const FloatTensor& a, const FloatTensor& b) {
  return a.shape == b.shape && a.values.size() == b.values.size() &&
         (a.values.empty() ||
          std::memcmp(a.values.data(), b.values.data(),
                      a.values.size() * sizeof(float)) == 0);
}

// Runs `work` as a phase and returns how long it took.
template <typename Work>
absl::StatusOr<int64_t> Timed(absl::string_view phase, Work work) {
  const int64_t start = MonotonicClock::Get().NowNs();
  FF_RETURN_IF_ERROR(RunPhase(phase, work));
  return MonotonicClock::Get().NowNs() - start;
}

}  // namespace

absl::StatusOr<OffloadFacts> RunOffloadCycles(
    const OffloadTarget& target, int cycles,
    const std::function<absl::StatusOr<FloatTensor>()>& decode,
    const FloatTensor& expected) {
  OffloadFacts facts;
  std::unique_ptr<FrozenStore> store;
  if (target.module != nullptr) {
    FF_ASSIGN_OR_RETURN(store,
                        FrozenStore::Create(target.module, target.runtime));
  }
  for (int i = 0; i < cycles; ++i) {
    OffloadCycle cycle;
    FF_ASSIGN_OR_RETURN(cycle.unload_ns, Timed("offload.unload", [&] {
                          return store == nullptr
                                     ? absl::OkStatus()
                                     : store->Unload(target.stream);
                        }));
    FF_ASSIGN_OR_RETURN(
        cycle.load_ns, Timed("offload.load", [&]() -> absl::Status {
          if (store == nullptr) return absl::OkStatus();
          FF_RETURN_IF_ERROR(store->Load(target.device, target.stream));
          return store->Wait();
        }));
    FF_ASSIGN_OR_RETURN(
        cycle.decode_ns, Timed("offload.decode", [&]() -> absl::Status {
          FF_ASSIGN_OR_RETURN(const FloatTensor output, decode());
          facts.is_identical &= HasSameBits(output, expected);
          return absl::OkStatus();
        }));
    facts.cycles.push_back(cycle);
  }
  if (store != nullptr) {
    facts.h2d_bytes = store->stats().h2d_bytes;
    facts.d2h_bytes = store->stats().d2h_bytes;
    facts.d2h_avoided_bytes = store->stats().d2h_avoided_bytes;
    if (const HostTier* tier = store->tier()) {
      facts.host_pinned_bytes = tier->pinned_bytes;
      facts.host_pageable_bytes = tier->pageable_bytes;
      facts.degraded = tier->degraded;
    }
  }
  return facts;
}

}  // namespace firstframe
