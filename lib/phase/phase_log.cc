#include "lib/phase/phase_log.h"

#include <algorithm>
#include <utility>

namespace firstframe::internal {

PhaseLog::~PhaseLog() {
  for (int32_t i = 0; i < size(); ++i) At(i).~PhaseEntry();
  for (std::atomic<PhaseEntry*>& chunk : chunks_)
    ::operator delete(chunk.load());
}

void PhaseLog::AddChunk() {
  FF_CHECK(num_chunks_ < kMaxChunks);
  const size_t size = size_t{1} << (kFirstChunkBits + num_chunks_);
  // Not constructed here: a page is first touched when a phase needs it.
  next_ = static_cast<PhaseEntry*>(::operator new(size * sizeof(PhaseEntry)));
  chunk_end_ = next_ + size;
  // Readers learn of the chunk by the release store of size_ that follows.
  chunks_[num_chunks_++].store(next_, std::memory_order_relaxed);
}

absl::string_view PhaseLog::CopyName(absl::string_view name) {
  if (name.size() > name_room_) {
    name_room_ = std::max(name.size(), kNameBlockBytes);
    name_blocks_.push_back(std::make_unique<char[]>(name_room_));
    next_name_ = name_blocks_.back().get();
  }
  char* const copy = next_name_;
  name.copy(copy, name.size());
  next_name_ += name.size();
  name_room_ -= name.size();
  return {copy, name.size()};
}

PhaseDetails& PhaseLog::Details(int32_t index) {
  std::unique_ptr<PhaseDetails>& details = At(index).details;
  if (details == nullptr) details = std::make_unique<PhaseDetails>();
  return *details;
}

void FailPhase(PhaseLog& log, int32_t index, const absl::Status& status) {
  PhaseDetails& details = log.Details(index);
  if (details.status == PhaseStatus::kError) return;
  details.status = PhaseStatus::kError;
  details.error = status.message().empty()
                      ? absl::StatusCodeToString(status.code())
                      : std::string(status.message());
}

void FailPhaseByException(PhaseLog& log, int32_t index) {
  FailPhase(log, index, absl::UnknownError("left by an exception"));
}

void SetPhaseAttribute(PhaseLog& log, int32_t index, absl::string_view name,
                       decltype(PhaseAttribute::value) value) {
  std::vector<PhaseAttribute>& attributes = log.Details(index).attributes;
  for (PhaseAttribute& attribute : attributes) {
    if (attribute.name != name) continue;
    attribute.value = std::move(value);
    return;
  }
  attributes.push_back({.name = std::string(name), .value = std::move(value)});
}

}  // namespace firstframe::internal
