// Calls of the CUDA driver, as the runtime and other libraries make them:
// through dlsym and cuGetProcAddress.

#ifndef LIB_OBSERVE_SHIM_CUDA_HOOKS_H_
#define LIB_OBSERVE_SHIM_CUDA_HOOKS_H_

namespace firstframe::shim {

using SymbolLookup = void* (*)(void* handle, const char* name);

// Returns what the program should get for symbol `name`, found at `found`: a
// function that times the call, or `found` itself. `lookup` and `handle` find
// further symbols of the same library.
void* HookCudaSymbol(const char* name, void* found, SymbolLookup lookup,
                     void* handle);

}  // namespace firstframe::shim

extern "C" void* ff_startup_hooked_dlsym(void* handle, const char* name);

#endif  // LIB_OBSERVE_SHIM_CUDA_HOOKS_H_
