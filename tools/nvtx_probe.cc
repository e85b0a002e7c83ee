// A program that pushes NVTX ranges, for profile_run's test. It speaks NVTX's
// protocol itself, so that no toolkit is needed to build it.
//
// Usage: nvtx_probe [exit CODE | kill | term | exec PROGRAM | fork |
//                    launch CUDA CUPTI exit|kill]

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

// The tables that a copy of NVTX 3 offers to what is injected: nvtxTypes.h.
using Function = void (*)();
Function core[16];
Function core2[16];
Function* core_slots[16];
Function* core2_slots[16];

int GetTable(int module, Function*** table, unsigned* size) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_slots : core2_slots;
  *size = 16;
  return 1;
}
struct Callbacks {
  size_t struct_size;
  int (*get_module_function_table)(int, Function***, unsigned*);
};
const void* GetExportTable(uint32_t id) {
  static const Callbacks callbacks = {sizeof(Callbacks), &GetTable};
  return id == 1 ? &callbacks : nullptr;
}

void Attach() {
  for (int i = 0; i < 16; ++i) {
    core_slots[i] = &core[i];
    core2_slots[i] = &core2[i];
  }
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr) return;
  void* const library = dlopen(path, RTLD_LAZY);
  if (library == nullptr) {
    std::fprintf(stderr, "nvtx_probe: %s\n", dlerror());
    return;
  }
  const auto initialize = reinterpret_cast<int (*)(void*)>(
      dlsym(library, "InitializeInjectionNvtx2"));
  if (initialize != nullptr) {
    initialize(reinterpret_cast<void*>(&GetExportTable));
  }
}

void Push(const char* name) {
  if (core[9] != nullptr) reinterpret_cast<int (*)(const char*)>(core[9])(name);
}
void PushWide(const wchar_t* name) {
  if (core[10] != nullptr) {
    reinterpret_cast<int (*)(const wchar_t*)>(core[10])(name);
  }
}
void Pop() {
  if (core[11] != nullptr) reinterpret_cast<int (*)()>(core[11])();
}
uint64_t Start(const char* name) {
  return core[5] == nullptr
             ? 0
             : reinterpret_cast<uint64_t (*)(const char*)>(core[5])(name);
}
void End(uint64_t range) {
  if (core[7] != nullptr) {
    reinterpret_cast<void (*)(uint64_t)>(core[7])(range);
  }
}

void* Open(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) std::fprintf(stderr, "nvtx_probe: %s\n", dlerror());
  return library;
}

// A program with a device, by stand-ins for the driver and for CUPTI
// (lib/profiler/testprogram): 3 launches inside of a region, one of them by the
// driver's function and one on another thread, and one before and one after it.
int Launch(const char* cuda, const char* cupti, bool killed) {
  Open(cuda);
  void* const library = Open(cupti);
  if (library == nullptr) return 1;
  const auto launch = reinterpret_cast<void (*)(const char*, bool)>(
      dlsym(library, "FakeLaunch"));
  // As the driver does inside cuInit.
  if (const char* const path = std::getenv("CUDA_INJECTION64_PATH")) {
    if (void* const injection = Open(path)) {
      reinterpret_cast<int (*)()>(dlsym(injection, "InitializeInjection"))();
    }
  }
  launch("_Z6beforev", false);
  Push("fastvideo.region::inference_denoising");
  launch("_Z6insidev", false);
  launch("_Z6insidev", true);
  std::thread([&] { launch("_Z8threadedv", false); }).join();
  Pop();
  launch("_Z5afterv", false);
  if (killed) {
    usleep(1400000);  // CUPTI is asked every second for what it has
    raise(SIGKILL);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Attach();
  if (argc > 4 && std::strcmp(argv[1], "launch") == 0) {
    return Launch(argv[2], argv[3], std::strcmp(argv[4], "kill") == 0);
  }
  Push("outside");
  Pop();
  Pop();  // one too many
  Push("fastvideo.region::profiler_region_inference_denoising");
  Push("step");
  usleep(20000);
  Pop();
  Pop();
  const uint64_t range = Start("fastvideo.region::model_loading");
  PushWide(L"wide \u89e3");
  Pop();
  End(range);
  const char* const what = argc > 1 ? argv[1] : "exit";
  if (std::strcmp(what, "kill") == 0) {
    usleep(600000);  // the recorder drains every 200 ms
    raise(SIGKILL);
  }
  if (std::strcmp(what, "term") == 0) {
    for (;;) pause();
  }
  if (std::strcmp(what, "exec") == 0 && argc > 2) {
    if (fork() == 0) {
      execl(argv[2], argv[2], static_cast<char*>(nullptr));
      _exit(127);
    }
    int status = 0;
    wait(&status);
  }
  if (std::strcmp(what, "fork") == 0) {
    Push("fastvideo.region::training_step");  // the parent's alone
    if (fork() == 0) {
      Push("fastvideo.region::inference_denoising");
      Push("in the child");
      Pop();
      Pop();
      Pop();  // of the range that the parent entered
      _exit(0);
    }
    int status = 0;
    wait(&status);
    Pop();
  }
  return argc > 2 && std::strcmp(what, "exit") == 0 ? std::atoi(argv[2]) : 0;
}
