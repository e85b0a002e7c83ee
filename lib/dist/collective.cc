#include "lib/dist/collective.h"

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

class SoleCollective final : public Collective {
 public:
  explicit SoleCollective(MemoryKind memory)
      : Collective(/*rank=*/0, /*size=*/1), memory_(memory) {}

  absl::string_view transport() const override { return "none"; }
  MemoryKind memory() const override { return memory_; }
  absl::Status Broadcast(void*, size_t, int) override { return status_; }
  absl::Status AllGather(void*, size_t) override { return status_; }
  absl::Status Wait() override { return status_; }
  absl::StatusOr<std::vector<std::string>> Exchange(
      absl::string_view mine) override {
    FF_RETURN_IF_ERROR(status_);
    return std::vector<std::string>{std::string(mine)};
  }
  void Fail(const absl::Status& status) override { status_ = status; }
  absl::Status Check() override { return status_; }

 private:
  const MemoryKind memory_;
  absl::Status status_;
};

}  // namespace

absl::Status Agree(Collective& group, const absl::Status& mine) {
  // The code's number, then the message; empty for OK.
  std::string text;
  if (!mine.ok()) {
    text = absl::StrCat(std::string(1, static_cast<char>(mine.code())),
                        mine.message());
  }
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> all, group.Exchange(text));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const absl::Status status(static_cast<absl::StatusCode>(all[rank][0]),
                              absl::string_view(all[rank]).substr(1));
    if (group.size() == 1) return status;
    return Annotate(status, absl::StrCat("rank ", rank));
  }
  return absl::OkStatus();
}

std::unique_ptr<Collective> MakeSoleCollective(MemoryKind memory) {
  return std::make_unique<SoleCollective>(memory);
}

}  // namespace firstframe
