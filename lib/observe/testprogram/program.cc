// A program to observe: loads the stand-in for the driver (argv[1]), reads a
// checkpoint (argv[2]), has an NVTX range, a child and a thread. Ends with 0
// when everything behaves as without observation, else with the number of the
// check.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace {

int check_number = 0;
#define CHECK(condition)                                           \
  do {                                                             \
    ++check_number;                                                \
    if (!(condition)) {                                            \
      fprintf(stderr, "check %d: %s\n", check_number, #condition); \
      exit(100 + check_number);                                    \
    }                                                              \
  } while (false)

template <typename Function>
Function Cast(void* address) {
  return reinterpret_cast<Function>(address);
}

void* const kDevice = reinterpret_cast<void*>(0x700000000000);

void UseDriver(const char* path) {
  void* const driver = dlopen(path, RTLD_NOW);
  CHECK(driver != nullptr);
  using GetProcAddress = int (*)(const char*, void**, int, uint64_t, int*);
  auto get = Cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  CHECK(get != nullptr);
  const auto find = [&](const char* name, uint64_t flags = 0) {
    void* function = nullptr;
    int status = -1;
    CHECK(get(name, &function, 13000, flags, &status) == 0 && status == 0);
    return function;
  };
  // Through itself, as the CUDA runtime does.
  get = Cast<GetProcAddress>(find("cuGetProcAddress"));
  void* none = &none;
  int status = 0;
  CHECK(get("cuNoSuchFunction", &none, 13000, 0, &status) == 500);
  CHECK(none == nullptr && status == 1);
  CHECK(Cast<int (*)(unsigned)>(find("cuInit"))(0) == 0);
  CHECK(Cast<int (*)(unsigned)>(dlsym(driver, "cuInit"))(7) == 1);
  void* context = nullptr;
  CHECK(Cast<int (*)(void**, int)>(find("cuDevicePrimaryCtxRetain"))(&context,
                                                                     0) == 0);
  CHECK(context == reinterpret_cast<void*>(0x1234));
  void* module = nullptr;
  CHECK(Cast<int (*)(void**, const void*)>(find("cuModuleLoadData"))(
            &module, "image") == 0);
  using Copy = int (*)(void*, const void*, size_t, void*);
  int host = 0;
  CHECK(Cast<Copy>(find("cuMemcpyHtoDAsync"))(kDevice, &host, 4096,
                                              reinterpret_cast<void*>(7)) == 0);
  int page_locked[2] = {0x10CCED, 0};
  CHECK(Cast<Copy>(find("cuMemcpyHtoDAsync"))(kDevice, page_locked, 4096,
                                              reinterpret_cast<void*>(7)) == 0);
  using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, unsigned, void*, void**, void**);
  const auto launch = Cast<Launch>(find("cuLaunchKernel"));
  for (int i = 0; i < 3; ++i) {
    CHECK(launch(reinterpret_cast<void*>(1), 2, 3, 4, 5, 6, 7, 8,
                 reinterpret_cast<void*>(9), reinterpret_cast<void**>(10),
                 reinterpret_cast<void**>(11)) == 0);
  }
  const auto copy = Cast<Copy>(find("cuMemcpyAsync"));
  const auto copy_per_thread = Cast<Copy>(find("cuMemcpyAsync", 2));
  CHECK(copy != copy_per_thread);
  CHECK(copy(&host, kDevice, 512, nullptr) == 0);  // back
  CHECK(copy_per_thread(&host, kDevice, 100, nullptr) == 0);
  CHECK(copy(kDevice, kDevice, 512, nullptr) == 0);  // neither way
  CHECK(Cast<int (*)(int)>(dlsym(driver, "cuUnwatched"))(4) == 5);
  CHECK(dlsym(driver, "cuNoSuchFunction") == nullptr);
  CHECK(dlerror() != nullptr);
}

void ReadCheckpoint(const char* path) {
  errno = 7;
  const int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  char bytes[1000];
  CHECK(pread(fd, bytes, sizeof(bytes), 10) == sizeof(bytes));
  CHECK(read(fd, bytes, 500) == 500);
  CHECK(errno == 7);
  void* const map = mmap(nullptr, 70000, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(map != MAP_FAILED);
  munmap(map, 70000);
  close(fd);
  std::ifstream stream(path, std::ios::binary);
  std::string text(2000, '\0');
  CHECK(stream.read(text.data(), text.size()).good());
  CHECK(open("/no/such/model.safetensors", O_RDONLY) < 0 && errno == ENOENT);
  CHECK(fopen("/no/such/model.safetensors", "r") == nullptr);
}

// What the NVTX header does at its first call.
int (*push)(const char*) = nullptr;
int (*pop)() = nullptr;
void** core[16] = {};

void UseRegions() {
  const char* const path = getenv("NVTX_INJECTION64_PATH");
  CHECK(path != nullptr);
  void* const library = dlopen(path, RTLD_LAZY);
  CHECK(library != nullptr);
  core[9] = reinterpret_cast<void**>(&push);
  core[11] = reinterpret_cast<void**>(&pop);
  using GetTable = const void* (*)(uint32_t);
  const GetTable get_table = [](uint32_t id) -> const void* {
    static const struct {
      size_t size;
      int (*get)(int, void****, unsigned*);
    } callbacks = {sizeof(callbacks),
                   [](int module, void**** table, unsigned* size) {
                     *table = core;
                     *size = 16;
                     return module == 1 ? 1 : 0;
                   }};
    return id == 1 ? &callbacks : nullptr;
  };
  const auto initialize =
      Cast<int (*)(GetTable)>(dlsym(library, "InitializeInjectionNvtx2"));
  CHECK(initialize != nullptr && initialize(get_table) == 1);
  CHECK(push != nullptr && pop != nullptr);
  CHECK(push("warmup") == 0);
  CHECK(push("inner") == 1);
  usleep(2000);
  CHECK(pop() == 1);
  CHECK(pop() == 0);
  CHECK(pop() < 0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 4);
  // By the caller's rules, and with RTLD_NEXT and RTLD_DEFAULT.
  CHECK(dlopen("libm.so.6", RTLD_NOW) != nullptr);
  CHECK(dlopen(nullptr, RTLD_NOW) != nullptr);
  CHECK(dlopen("/no/such/library.so", RTLD_NOW) == nullptr);
  CHECK(strstr(dlerror(), "no/such") != nullptr);
  CHECK(dlsym(RTLD_DEFAULT, "printf") != nullptr);
  CHECK(dlsym(RTLD_NEXT, "printf") != nullptr);
  UseDriver(argv[1]);
  ReadCheckpoint(argv[2]);
  UseRegions();
  std::thread([&] { ReadCheckpoint(argv[2]); }).join();
  const pid_t child = fork();
  if (child == 0) {
    ReadCheckpoint(argv[2]);
    _exit(0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  const pid_t failing = vfork();
  if (failing == 0) _exit(3);
  CHECK(waitpid(failing, &status, 0) == failing && WEXITSTATUS(status) == 3);
  return atoi(argv[3]);
}
