// A connected TCP socket that sends and receives whole frames by a deadline.

#ifndef LIB_DIST_TCP_SOCKET_H_
#define LIB_DIST_TCP_SOCKET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace firstframe {

// On the wire: kind (1 byte), payload size (4 bytes, little-endian), payload.
struct TcpFrame {
  char kind = 0;
  std::string payload;
};

// Movable, thread-compatible. Closed by the destructor.
class TcpSocket {
 public:
  TcpSocket() = default;
  explicit TcpSocket(int fd) : fd_(fd) {}
  TcpSocket(TcpSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), inbox_(std::move(other.inbox_)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept;
  ~TcpSocket();

  // Listens on `port` of all addresses, IPv4 and IPv6. Codes from errno
  // (FailedPrecondition or AlreadyExists where the port is in use).
  static absl::StatusOr<TcpSocket> Listen(int port);

  // Connects to the first address of `host` that answers.
  static absl::StatusOr<TcpSocket> Connect(const std::string& host, int port,
                                           absl::Time deadline);

  // Accepts one connection; DeadlineExceeded when none comes.
  absl::StatusOr<TcpSocket> Accept(absl::Time deadline);

  // Sends one frame. Unavailable when the other side is gone.
  absl::Status Send(char kind, absl::string_view payload, absl::Time deadline);

  // Receives one frame; Unavailable when the other side is gone, DataLoss when
  // it does not speak in frames.
  absl::StatusOr<TcpFrame> Receive(absl::Time deadline);

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  // A frame, or a part of one, was read from the kernel and not returned yet.
  bool has_buffered_input() const { return !inbox_.empty(); }
  void Close();

 private:
  int fd_ = -1;
  std::string inbox_;  // received, not yet a whole frame
};

}  // namespace firstframe

#endif  // LIB_DIST_TCP_SOCKET_H_
