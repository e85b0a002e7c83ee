// What to load, from a safetensors checkpoint whose headers were judged sound.

#ifndef LIB_LOAD_LOAD_SOURCE_H_
#define LIB_LOAD_LOAD_SOURCE_H_

#include "lib/load/plan.h"
#include "lib/safetensors/checkpoint.h"

namespace firstframe {

// Returns every tensor of `checkpoint`, in its order, with the files that hold
// them. Copies what it needs: the checkpoint may go.
LoadSource MakeLoadSource(const Checkpoint& checkpoint);

}  // namespace firstframe

#endif  // LIB_LOAD_LOAD_SOURCE_H_
