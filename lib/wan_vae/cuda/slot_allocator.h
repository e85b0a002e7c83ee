// Places frames in the arena of a plan.

#ifndef LIB_WAN_VAE_CUDA_SLOT_ALLOCATOR_H_
#define LIB_WAN_VAE_CUDA_SLOT_ALLOCATOR_H_

#include <map>

namespace firstframe::cuda {

// Gives out runs of slots, from the smallest free run that is large enough; the
// arena grows when none is. Nothing is touched: slots are numbers. Releasing
// what was not taken is a bug and stops the process. Thread-compatible.
class SlotAllocator {
 public:
  // Returns the first of `slots` (at least one) neighbouring slots.
  int Take(int slots);
  // Gives back the whole run that Take returned as `first`.
  void Release(int first);
  // The most slots that the arena ever reached.
  int peak() const { return peak_; }

 private:
  std::map<int, int> free_;  // first slot to length; neighbours are joined
  std::map<int, int> used_;
  int end_ = 0;
  int peak_ = 0;
};

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_SLOT_ALLOCATOR_H_
