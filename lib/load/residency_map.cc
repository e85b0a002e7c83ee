#include "lib/load/residency_map.h"

#include <algorithm>
#include <atomic>

#include "lib/base/run_threads.h"

namespace firstframe {
namespace {

constexpr uint64_t kStretchBytes = 32 << 20;
// Below this, starting a thread costs more than it saves.
constexpr size_t kCountedStretchesPerThread = 6;
constexpr size_t kSampledStretchesPerThread = 24;

ResidencyMap::State StateFrom(const Residency& residency) {
  if (!residency.cached_pages) return ResidencyMap::State::kUnknown;
  if (*residency.cached_pages == residency.total_pages) {
    return ResidencyMap::State::kIn;
  }
  return *residency.cached_pages == 0 ? ResidencyMap::State::kOut
                                      : ResidencyMap::State::kMixed;
}

}  // namespace

ResidencyMap::ResidencyMap(absl::Span<const DataFile* const> files, int threads,
                           Detail detail) {
  const bool samples = detail == Detail::kSample;
  struct Job {
    size_t file;
    uint64_t begin;
    Residency result;
  };
  std::vector<Job> jobs;
  for (size_t f = 0; f < files.size(); ++f) {
    for (uint64_t at = 0; at < files[f]->size_bytes(); at += kStretchBytes) {
      jobs.push_back({f, at, {}});
    }
  }
  const int most =
      static_cast<int>(jobs.size() / (samples ? kSampledStretchesPerThread
                                              : kCountedStretchesPerThread));
  std::atomic<size_t> next = 0;
  RunOnThreads(std::min(threads, most), [&](int) {
    for (size_t i = next.fetch_add(1); i < jobs.size(); i = next.fetch_add(1)) {
      Job& job = jobs[i];
      const DataFile& file = *files[job.file];
      job.result = samples ? SampleResidency(file, job.begin, kStretchBytes)
                           : ProbeResidency(file, job.begin, kStretchBytes);
    }
  });

  files_.resize(files.size());
  for (const Job& job : jobs) {
    AddResidency(job.result, &files_[job.file].whole);
    files_[job.file].stretches.push_back(StateFrom(job.result));
  }
  for (const File& file : files_) {
    if (!file.stretches.empty()) AddResidency(file.whole, &total_);
  }
  if (total_.method.empty()) {
    total_.method = "none";
    total_.cached_pages = 0;
  }
}

ResidencyMap::State ResidencyMap::StateOf(size_t f, uint64_t begin,
                                          uint64_t end) const {
  const std::vector<State>& stretches = files_[f].stretches;
  if (begin >= end || stretches.empty()) return State::kIn;
  const size_t first =
      std::min<size_t>(begin / kStretchBytes, stretches.size() - 1);
  const size_t last =
      std::min<size_t>((end - 1) / kStretchBytes, stretches.size() - 1);
  for (size_t i = first; i <= last; ++i) {
    if (stretches[i] != stretches[first]) return State::kMixed;
  }
  return stretches[first];
}

}  // namespace firstframe
