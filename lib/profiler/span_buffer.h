// Spans recorded by many threads without locks, drained by one.
//
// Each thread writes to chunks of its own; a chunk's count is the only thing
// that writer and reader share. When the budget is used up spans are counted
// and dropped: recording never waits and never grows past it.

#ifndef LIB_PROFILER_SPAN_BUFFER_H_
#define LIB_PROFILER_SPAN_BUFFER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace firstframe {

// One finished span, times in ticks (lib/profiler/tick_clock.h).
struct SpanRecord {
  int64_t start;
  int64_t end;
  uint32_t name;  // a number that the recorder's owner gave out
  uint32_t kind;  // likewise
};

// One per process or session. Thread-safe: Add from any thread, Drain from one
// at a time. Must outlive the threads that record into it.
class SpanRecorder {
 public:
  // Holds at most `max_bytes` of spans that nobody has drained.
  explicit SpanRecorder(size_t max_bytes)
      : max_chunks_(max_bytes / kChunkBytes) {}
  ~SpanRecorder();
  SpanRecorder(const SpanRecorder&) = delete;
  SpanRecorder& operator=(const SpanRecorder&) = delete;

  // Appends to the calling thread's chunk; wait-free but for the first span of
  // a thread and of a chunk.
  void Add(const SpanRecord& record) {
    Thread* const thread = Current();
    Chunk* chunk = thread->tail;
    const size_t at = chunk->count.load(std::memory_order_relaxed);
    if (at < kChunkSpans) {
      chunk->spans[at] = record;
      chunk->count.store(at + 1, std::memory_order_release);
      return;
    }
    AddToNewChunk(thread, record);
  }

  // Calls `take(tid, record)` for every span that was complete when it is
  // looked at, per thread in the order recorded, and frees what they held.
  // `tid` is the kernel's thread id.
  void Drain(absl::FunctionRef<void(int64_t, const SpanRecord&)> take);

  // The kernel's id of the calling thread, asked for once.
  static int64_t ThreadId() {
    if (__builtin_expect(tid_ == 0, 0)) tid_ = AskThreadId();
    return tid_;
  }

  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  int64_t thread_count() const;

  // Forgets the calling thread's chunk pointers; a forked child starts anew.
  static void ForgetThread();

 private:
  static constexpr size_t kChunkSpans = 2046;
  struct Chunk {
    std::atomic<size_t> count = 0;
    std::atomic<Chunk*> next = nullptr;
    std::array<SpanRecord, kChunkSpans> spans;
  };
  static constexpr size_t kChunkBytes = sizeof(Chunk);

  struct Thread {
    int64_t tid = 0;
    Chunk* tail = nullptr;  // the writer's
    Chunk* head = nullptr;  // the reader's
    size_t read = 0;        // of head
  };

  Thread* Current() {
    if (__builtin_expect(current_owner_ == id_, 1)) return current_;
    return Register();
  }
  static int64_t AskThreadId();
  Thread* Register();
  void AddToNewChunk(Thread* thread, const SpanRecord& record);

  // Of the recorder that current_ belongs to. Numbers, not addresses: a new
  // recorder may stand where an old one stood.
  static thread_local uint64_t current_owner_;
  static thread_local Thread* current_;
  static thread_local int64_t tid_;
  static std::atomic<uint64_t> last_id_;

  const uint64_t id_ = ++last_id_;
  const size_t max_chunks_;
  std::atomic<size_t> chunks_ = 0;
  std::atomic<int64_t> dropped_ = 0;
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Thread>> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_PROFILER_SPAN_BUFFER_H_
