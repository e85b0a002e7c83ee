#include "lib/startup/rendezvous.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// Port 0 asks the kernel for a free one.
absl::StatusOr<int> FreeLocalPort() {
  const auto error = [](const char* what) {
    return absl::UnavailableError(absl::StrCat(
        "no local port for the rendezvous: ", what, ": ", strerror(errno)));
  };
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return error("socket");
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (::bind(fd, generic, size) != 0) return error("bind");
  if (::getsockname(fd, generic, &size) != 0) return error("getsockname");
  return ntohs(address.sin_port);
}

}  // namespace

absl::StatusOr<RendezvousFacts> ChooseRendezvous(const Launch& launch) {
  RendezvousFacts facts = {.source = "launcher",
                           .address = launch.master_address,
                           .port = launch.master_port,
                           .rank = launch.rank,
                           .world_size = launch.world_size};
  const bool is_alone = launch.world_size == 1;
  if (facts.address.empty() && is_alone) facts.address = "127.0.0.1";
  if (facts.port == 0 && is_alone) {
    facts.source = "local";
    FF_ASSIGN_OR_RETURN(facts.port, FreeLocalPort());
  }
  return facts;
}

}  // namespace firstframe
