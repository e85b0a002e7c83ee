#include "lib/dist/tcp_control.h"

#include <poll.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "lib/base/status_macros.h"
#include "lib/dist/tcp_socket.h"

namespace firstframe {
namespace {

constexpr char kHello =
    'H';                     // payload "firstframe 1 RANK WORLD_SIZE", and back
constexpr char kData = 'D';  // one rank's message, or all of them
constexpr char kFail = 'F';  // "rank 3 failed: ..."

constexpr absl::string_view kProtocol = "firstframe-1";
// Tried one after the other from the first: enough to step over a store of the
// launcher and a neighbour job's.
constexpr int kPortsTried = 8;

// All messages of one exchange in one: each with its decimal size and a colon.
std::string Pack(const std::vector<std::string>& messages) {
  std::string packed;
  for (const std::string& message : messages) {
    absl::StrAppend(&packed, message.size(), ":", message);
  }
  return packed;
}

absl::StatusOr<std::vector<std::string>> Unpack(absl::string_view packed,
                                                int count) {
  std::vector<std::string> messages;
  while (!packed.empty()) {
    const size_t colon = packed.find(':');
    size_t size;
    if (colon == absl::string_view::npos ||
        !absl::SimpleAtoi(packed.substr(0, colon), &size) ||
        size > packed.size() - colon - 1) {
      return absl::DataLossError("rank 0 sent a malformed exchange");
    }
    messages.emplace_back(packed.substr(colon + 1, size));
    packed.remove_prefix(colon + 1 + size);
  }
  if (messages.size() != static_cast<size_t>(count)) {
    return absl::DataLossError("rank 0 sent an exchange of another size");
  }
  return messages;
}

std::string Hello(int rank, int size) {
  return absl::StrCat(kProtocol, " ", rank, " ", size);
}

class TcpControl final : public Collective {
 public:
  TcpControl(int rank, int size, absl::Duration timeout,
             std::vector<TcpSocket> peers)
      : Collective(rank, size), timeout_(timeout), peers_(std::move(peers)) {}

  absl::string_view transport() const override { return "tcp"; }
  MemoryKind memory() const override { return MemoryKind::kHost; }
  absl::Status Broadcast(void*, size_t, int) override { return NoData(); }
  absl::Status AllGather(void*, size_t) override { return NoData(); }
  absl::Status Wait() override { return status_; }

  absl::StatusOr<std::vector<std::string>> Exchange(
      absl::string_view mine) override {
    FF_RETURN_IF_ERROR(status_);
    const absl::Time deadline = absl::Now() + timeout_;
    absl::StatusOr<std::vector<std::string>> all =
        rank() == 0 ? ExchangeAsRoot(mine, deadline)
                    : ExchangeAsLeaf(mine, deadline);
    if (!all.ok()) return Break(all.status());
    return all;
  }

  void Fail(const absl::Status& status) override {
    if (!status_.ok()) return;
    (void)Break(absl::AbortedError(
        absl::StrCat("rank ", rank(), " failed: ", status.message())));
  }

  // Reads what is there, without waiting.
  absl::Status Check() override {
    FF_RETURN_IF_ERROR(status_);
    std::vector<pollfd> entries;
    for (const TcpSocket& peer : peers_) {
      entries.push_back({.fd = peer.fd(), .events = POLLIN, .revents = 0});
    }
    if (::poll(entries.data(), entries.size(), 0) <= 0) return status_;
    for (size_t i = 0; i < entries.size(); ++i) {
      // A message of the next exchange may wait there; keep it for that.
      if (entries[i].revents == 0 || early_[i].kind != 0) continue;
      absl::StatusOr<TcpFrame> frame =
          peers_[i].Receive(absl::Now() + absl::Seconds(1));
      if (absl::IsDeadlineExceeded(frame.status())) continue;
      if (!frame.ok()) return Break(Left(i, frame.status()));
      if (frame->kind == kFail)
        return Break(absl::AbortedError(frame->payload));
      early_[i] = *std::move(frame);
    }
    return status_;
  }

 private:
  static absl::Status NoData() {
    return absl::UnimplementedError("the tcp transport carries no tensors");
  }

  int RankOfPeer(size_t i) const {
    return rank() == 0 ? static_cast<int>(i) + 1 : 0;
  }

  absl::Status Left(size_t i, const absl::Status& why) const {
    return absl::AbortedError(
        absl::StrCat("rank ", RankOfPeer(i), " left: ", why.message()));
  }

  // Remembers the error and passes it on; a connection that is closed without
  // a word would reach the others too, but without the reason.
  absl::Status Break(const absl::Status& status) {
    if (!status_.ok()) return status_;
    status_ = status;
    for (TcpSocket& peer : peers_) {
      (void)peer.Send(kFail, status.message(), absl::Now() + absl::Seconds(1));
      peer.Close();
    }
    return status_;
  }

  absl::StatusOr<std::string> ReceiveData(size_t i, absl::Time deadline) {
    absl::StatusOr<TcpFrame> frame = early_[i].kind != 0
                                         ? std::exchange(early_[i], {})
                                         : peers_[i].Receive(deadline);
    if (absl::IsDeadlineExceeded(frame.status())) {
      return absl::DeadlineExceededError(
          absl::StrCat("waited ", absl::FormatDuration(timeout_), " for rank ",
                       RankOfPeer(i)));
    }
    if (!frame.ok()) return Left(i, frame.status());
    if (frame->kind == kFail) return absl::AbortedError(frame->payload);
    return std::move(frame->payload);
  }

  absl::StatusOr<std::vector<std::string>> ExchangeAsRoot(
      absl::string_view mine, absl::Time deadline) {
    std::vector<std::string> all(size());
    all[0] = std::string(mine);
    // Whoever comes first is read first, so that news of a failure does not
    // wait behind a slow rank.
    std::vector<size_t> waiting(peers_.size());
    for (size_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
    while (!waiting.empty()) {
      const size_t ready = WaitForAny(waiting, deadline);
      FF_ASSIGN_OR_RETURN(all[waiting[ready] + 1],
                          ReceiveData(waiting[ready], deadline));
      waiting.erase(waiting.begin() + ready);
    }
    const std::string packed = Pack(all);
    for (size_t i = 0; i < peers_.size(); ++i) {
      const absl::Status sent = peers_[i].Send(kData, packed, deadline);
      if (!sent.ok()) return Left(i, sent);
    }
    return all;
  }

  // Returns the index into `waiting` of a peer that has something to say, or of
  // the first when the time is over.
  size_t WaitForAny(const std::vector<size_t>& waiting, absl::Time deadline) {
    std::vector<pollfd> entries;
    for (size_t k = 0; k < waiting.size(); ++k) {
      if (early_[waiting[k]].kind != 0 ||
          peers_[waiting[k]].has_buffered_input()) {
        return k;
      }
      entries.push_back(
          {.fd = peers_[waiting[k]].fd(), .events = POLLIN, .revents = 0});
    }
    const int64_t ms = std::clamp<int64_t>(
        absl::ToInt64Milliseconds(deadline - absl::Now()), 0, 1 << 30);
    if (::poll(entries.data(), entries.size(), static_cast<int>(ms)) > 0) {
      for (size_t k = 0; k < entries.size(); ++k) {
        if (entries[k].revents != 0) return k;
      }
    }
    return 0;
  }

  absl::StatusOr<std::vector<std::string>> ExchangeAsLeaf(
      absl::string_view mine, absl::Time deadline) {
    const absl::Status sent = peers_[0].Send(kData, mine, deadline);
    // Rank 0's parting words may still be there to read.
    absl::StatusOr<std::string> packed = ReceiveData(0, deadline);
    if (!packed.ok()) return packed.status();
    if (!sent.ok()) return Left(0, sent);
    return Unpack(*packed, size());
  }

  const absl::Duration timeout_;
  std::vector<TcpSocket> peers_;  // rank 0: of ranks 1..; others: rank 0's
  std::vector<TcpFrame> early_ = std::vector<TcpFrame>(peers_.size());
  absl::Status status_;
};

absl::StatusOr<TcpSocket> ListenOnSomePort(int first_port) {
  absl::Status last;
  for (int k = 0; k < kPortsTried && first_port + k <= 65535; ++k) {
    absl::StatusOr<TcpSocket> socket = TcpSocket::Listen(first_port + k);
    if (socket.ok()) return socket;
    last = socket.status();
  }
  return last;
}

absl::StatusOr<std::vector<TcpSocket>> MeetAsRoot(const Launch& launch,
                                                  int first_port,
                                                  absl::Time deadline) {
  FF_ASSIGN_OR_RETURN(TcpSocket listener, ListenOnSomePort(first_port));
  std::vector<TcpSocket> peers(launch.world_size - 1);
  int missing = launch.world_size - 1;
  while (missing > 0) {
    absl::StatusOr<TcpSocket> socket = listener.Accept(deadline);
    if (!socket.ok()) {
      return Annotate(socket.status(),
                      absl::StrCat("rank 0 met ", launch.world_size - missing,
                                   " of ", launch.world_size, " ranks"));
    }
    // Strangers knock too; only a well-formed greeting counts.
    const absl::StatusOr<TcpFrame> hello =
        socket->Receive(std::min(deadline, absl::Now() + absl::Seconds(5)));
    if (!hello.ok() || hello->kind != kHello) continue;
    const std::vector<std::string> words = absl::StrSplit(hello->payload, ' ');
    int rank;
    int size;
    if (words.size() != 3 || words[0] != kProtocol ||
        !absl::SimpleAtoi(words[1], &rank) ||
        !absl::SimpleAtoi(words[2], &size) || size != launch.world_size ||
        rank < 1 || rank >= size || peers[rank - 1].is_open()) {
      continue;
    }
    FF_RETURN_IF_ERROR(socket->Send(kHello, Hello(0, size), deadline));
    peers[rank - 1] = *std::move(socket);
    --missing;
  }
  return peers;
}

absl::StatusOr<std::vector<TcpSocket>> MeetAsLeaf(const Launch& launch,
                                                  int first_port,
                                                  absl::Time deadline) {
  absl::Status last;
  for (int attempt = 0; absl::Now() < deadline; ++attempt) {
    const int port = first_port + attempt % kPortsTried;
    const absl::Time soon = std::min(deadline, absl::Now() + absl::Seconds(2));
    absl::StatusOr<TcpSocket> socket =
        TcpSocket::Connect(launch.master_address, port, soon);
    if (socket.ok()) {
      last = socket->Send(kHello, Hello(launch.rank, launch.world_size), soon);
      if (last.ok()) {
        const absl::StatusOr<TcpFrame> answer = socket->Receive(soon);
        if (answer.ok() && answer->kind == kHello &&
            answer->payload == Hello(0, launch.world_size)) {
          std::vector<TcpSocket> peers;
          peers.push_back(*std::move(socket));
          return peers;
        }
        last = answer.ok() ? absl::DataLossError("another server answers")
                           : answer.status();
      }
    } else {
      last = socket.status();
    }
    // Rank 0 may not listen yet.
    if (attempt % kPortsTried == kPortsTried - 1) {
      absl::SleepFor(absl::Milliseconds(50));
    }
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", launch.rank, " did not meet rank 0 at ", launch.master_address,
      ":", first_port, ": ", last.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> ConnectTcpControl(
    const Launch& launch, absl::Duration timeout) {
  if (launch.world_size == 1) return MakeSoleCollective(MemoryKind::kHost);
  if (launch.master_address.empty()) {
    return absl::InvalidArgumentError(
        "MASTER_ADDR is not set: expected the address of rank 0");
  }
  const int first_port =
      launch.master_port + (launch.master_port_is_taken ? 1 : 0);
  const absl::Time deadline = absl::Now() + timeout;
  FF_ASSIGN_OR_RETURN(std::vector<TcpSocket> peers,
                      launch.rank == 0
                          ? MeetAsRoot(launch, first_port, deadline)
                          : MeetAsLeaf(launch, first_port, deadline));
  return std::make_unique<TcpControl>(launch.rank, launch.world_size, timeout,
                                      std::move(peers));
}

}  // namespace firstframe
