#include "lib/dist/tcp_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr size_t kHeaderBytes = 5;
// Far above any exchange of ours; a larger size is another protocol's bytes.
constexpr uint32_t kMaxPayloadBytes = 64 << 20;

void Configure(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

absl::Status WaitFor(int fd, short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("no answer in time");
    }
    pollfd entry = {.fd = fd, .events = events, .revents = 0};
    const int64_t ms =
        std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1, 60'000);
    const int n = ::poll(&entry, 1, static_cast<int>(ms));
    if (n > 0) return absl::OkStatus();
    if (n < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  }
}

absl::Status ConnectOne(int fd, const addrinfo& address, absl::Time deadline) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINPROGRESS) return absl::ErrnoToStatus(errno, "connect");
  FF_RETURN_IF_ERROR(WaitFor(fd, POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? absl::OkStatus() : absl::ErrnoToStatus(error, "connect");
}

}  // namespace

TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    inbox_ = std::move(other.inbox_);
  }
  return *this;
}

TcpSocket::~TcpSocket() { Close(); }

void TcpSocket::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

absl::StatusOr<TcpSocket> TcpSocket::Listen(int port) {
  const std::string where = absl::StrCat("cannot listen on port ", port);
  int fd = ::socket(AF_INET6, SOCK_STREAM, 0);
  const bool is_v6 = fd >= 0;
  if (!is_v6) fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, where);
  TcpSocket socket(fd);
  Configure(fd);
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int rc;
  if (is_v6) {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    rc = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  } else {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<uint16_t>(port));
    rc = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  if (rc != 0 || ::listen(fd, SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, where);
  }
  return socket;
}

absl::StatusOr<TcpSocket> TcpSocket::Connect(const std::string& host, int port,
                                             absl::Time deadline) {
  const std::string where = absl::StrCat("cannot reach ", host, ":", port);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int rc =
      ::getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
  if (rc != 0) {
    return absl::UnavailableError(
        absl::StrCat(where, ": ", ::gai_strerror(rc)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(
      list, &::freeaddrinfo);
  absl::Status last = absl::UnavailableError("no address");
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, a->ai_socktype, a->ai_protocol);
    if (fd < 0) continue;
    TcpSocket socket(fd);
    Configure(fd);
    last = ConnectOne(fd, *a, deadline);
    if (last.ok()) return socket;
  }
  return Annotate(last, where);
}

absl::StatusOr<TcpSocket> TcpSocket::Accept(absl::Time deadline) {
  while (true) {
    const int fd = ::accept(fd_, nullptr, nullptr);
    if (fd >= 0) {
      Configure(fd);
      return TcpSocket(fd);
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FF_RETURN_IF_ERROR(WaitFor(fd_, POLLIN, deadline));
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return absl::ErrnoToStatus(errno, "accept");
    }
  }
}

absl::Status TcpSocket::Send(char kind, absl::string_view payload,
                             absl::Time deadline) {
  if (fd_ < 0) return absl::UnavailableError("the connection is closed");
  std::string frame(kHeaderBytes, kind);
  const uint32_t size = static_cast<uint32_t>(payload.size());
  for (int i = 0; i < 4; ++i) frame[1 + i] = static_cast<char>(size >> 8 * i);
  frame.append(payload.data(), payload.size());
  absl::string_view left = frame;
  while (!left.empty()) {
    // MSG_NOSIGNAL: a peer that died is an error here, not a SIGPIPE.
    const ssize_t n = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      left.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FF_RETURN_IF_ERROR(WaitFor(fd_, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return absl::UnavailableError(
          absl::StrCat("the connection broke: ", ::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TcpFrame> TcpSocket::Receive(absl::Time deadline) {
  if (fd_ < 0) return absl::UnavailableError("the connection is closed");
  while (true) {
    if (inbox_.size() >= kHeaderBytes) {
      uint32_t size = 0;
      for (int i = 0; i < 4; ++i) {
        size |= static_cast<uint32_t>(static_cast<unsigned char>(inbox_[1 + i]))
                << 8 * i;
      }
      if (size > kMaxPayloadBytes) {
        return absl::DataLossError("the other side speaks another protocol");
      }
      if (inbox_.size() >= kHeaderBytes + size) {
        TcpFrame frame{inbox_[0], inbox_.substr(kHeaderBytes, size)};
        inbox_.erase(0, kHeaderBytes + size);
        return frame;
      }
    }
    char buffer[65536];
    const ssize_t n = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (n > 0) {
      inbox_.append(buffer, static_cast<size_t>(n));
    } else if (n == 0) {
      return absl::UnavailableError("the connection was closed");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      FF_RETURN_IF_ERROR(WaitFor(fd_, POLLIN, deadline));
    } else if (errno != EINTR) {
      return absl::UnavailableError(
          absl::StrCat("the connection broke: ", ::strerror(errno)));
    }
  }
}

}  // namespace firstframe
