// The header is C++ as well, and stands by itself.

#include <cstring>
#include <type_traits>

#include "lib/c_api/firstframe.h"

static_assert(std::is_standard_layout_v<ff_tensor>);
static_assert(std::is_same_v<decltype(&ff_abi_version), int32_t (*)()>);

int main() {
  int32_t devices = -1;
  const bool ok = ff_abi_version() == FIRSTFRAME_ABI_VERSION &&
                  ff_device_count(&devices) == FF_OK && devices >= 0 &&
                  ff_device_count(nullptr) == FF_INVALID_ARGUMENT &&
                  std::strstr(ff_last_error(), "count is NULL") != nullptr;
  return ok ? 0 : 1;
}
