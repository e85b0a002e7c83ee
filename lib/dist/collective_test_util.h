// What every transport must do, as checks that any group can be put through.

#ifndef LIB_DIST_COLLECTIVE_TEST_UTIL_H_
#define LIB_DIST_COLLECTIVE_TEST_UTIL_H_

#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/dist/collective.h"

namespace firstframe::testing {

// Runs broadcasts and gathers of several sizes over host memory and exchanges
// of strings; returns the first wrong result as an Internal error. Every rank
// calls it once.
inline absl::Status ExerciseGroup(Collective& group) {
  const int rank = group.rank();
  for (const size_t size : {0, 1, 255, 4096, 1 << 20, (3 << 20) + 7}) {
    for (int root = 0; root < group.size(); ++root) {
      std::vector<unsigned char> data(size);
      for (size_t i = 0; i < size && rank == root; ++i) {
        data[i] = static_cast<unsigned char>(i * 31 + root);
      }
      FF_RETURN_IF_ERROR(group.Broadcast(data.data(), size, root));
      FF_RETURN_IF_ERROR(group.Wait());
      for (size_t i = 0; i < size; ++i) {
        if (data[i] != static_cast<unsigned char>(i * 31 + root)) {
          return absl::InternalError(
              absl::StrCat("broadcast of ", size, " bytes differs at ", i));
        }
      }
    }
    std::vector<unsigned char> all(size * group.size());
    for (size_t i = 0; i < size; ++i) {
      all[rank * size + i] = static_cast<unsigned char>(i * 7 + rank);
    }
    FF_RETURN_IF_ERROR(group.AllGather(all.data(), size));
    FF_RETURN_IF_ERROR(group.Wait());
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t r = i / size;
      if (all[i] != static_cast<unsigned char>((i - r * size) * 7 + r)) {
        return absl::InternalError(
            absl::StrCat("gather of ", size, " bytes differs at ", i));
      }
    }
  }
  // Several operations in flight at once.
  std::vector<std::vector<int>> many(5, std::vector<int>(1000));
  for (int k = 0; k < 5; ++k) {
    const int root = k % group.size();
    if (rank == root) std::iota(many[k].begin(), many[k].end(), k);
    FF_RETURN_IF_ERROR(
        group.Broadcast(many[k].data(), many[k].size() * sizeof(int), root));
  }
  FF_RETURN_IF_ERROR(group.Wait());
  for (int k = 0; k < 5; ++k) {
    if (many[k].back() != k + 999) return absl::InternalError("many in flight");
  }
  for (const size_t size : {0, 1, 5000}) {
    FF_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        group.Exchange(std::string(
                            size + rank, static_cast<char>('a' + rank))));
    for (int r = 0; r < group.size(); ++r) {
      if (all[r] != std::string(size + r, static_cast<char>('a' + r))) {
        return absl::InternalError(absl::StrCat("exchange: rank ", r));
      }
    }
  }
  return Agree(group, absl::OkStatus());
}

}  // namespace firstframe::testing

#endif  // LIB_DIST_COLLECTIVE_TEST_UTIL_H_
