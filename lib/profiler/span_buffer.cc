#include "lib/profiler/span_buffer.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace firstframe {

thread_local uint64_t SpanRecorder::current_owner_ = 0;
thread_local SpanRecorder::Thread* SpanRecorder::current_ = nullptr;
thread_local int64_t SpanRecorder::tid_ = 0;
std::atomic<uint64_t> SpanRecorder::last_id_ = 0;

int64_t SpanRecorder::AskThreadId() { return ::syscall(SYS_gettid); }

SpanRecorder::~SpanRecorder() {
  absl::MutexLock lock(&mutex_);
  for (const auto& thread : threads_) {
    for (Chunk* chunk = thread->head; chunk != nullptr;) {
      Chunk* const next = chunk->next.load(std::memory_order_relaxed);
      delete chunk;
      chunk = next;
    }
  }
  if (current_owner_ == id_) ForgetThread();
}

void SpanRecorder::ForgetThread() {
  current_owner_ = 0;
  current_ = nullptr;
  tid_ = 0;
}

SpanRecorder::Thread* SpanRecorder::Register() {
  auto thread = std::make_unique<Thread>();
  thread->tid = ThreadId();
  // A thread's first chunk is outside the budget: it must have one to write to.
  thread->head = thread->tail = new Chunk;
  chunks_.fetch_add(1, std::memory_order_relaxed);
  current_owner_ = id_;
  current_ = thread.get();
  absl::MutexLock lock(&mutex_);
  threads_.push_back(std::move(thread));
  return current_;
}

void SpanRecorder::AddToNewChunk(Thread* thread, const SpanRecord& record) {
  if (chunks_.load(std::memory_order_relaxed) >= max_chunks_) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  chunks_.fetch_add(1, std::memory_order_relaxed);
  auto* const chunk = new Chunk;
  chunk->spans[0] = record;
  chunk->count.store(1, std::memory_order_relaxed);
  // Publishes the chunk with its first span to the reader.
  thread->tail->next.store(chunk, std::memory_order_release);
  thread->tail = chunk;
}

void SpanRecorder::Drain(
    absl::FunctionRef<void(int64_t, const SpanRecord&)> take) {
  absl::MutexLock lock(&mutex_);
  for (const auto& thread : threads_) {
    for (;;) {
      Chunk* const chunk = thread->head;
      const size_t count = chunk->count.load(std::memory_order_acquire);
      for (; thread->read < count; ++thread->read) {
        take(thread->tid, chunk->spans[thread->read]);
      }
      Chunk* const next = chunk->next.load(std::memory_order_acquire);
      if (next == nullptr) break;
      // The writer has left the chunk; nothing in it is new any more.
      thread->head = next;
      thread->read = 0;
      delete chunk;
      chunks_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

int64_t SpanRecorder::thread_count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(threads_.size());
}

}  // namespace firstframe
