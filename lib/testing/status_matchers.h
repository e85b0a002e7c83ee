// GoogleTest matchers for absl::Status and absl::StatusOr.
//
//   EXPECT_THAT(status, IsOk());
//   EXPECT_THAT(result, IsOkAndHolds(42));
//   EXPECT_THAT(result, StatusIs(absl::StatusCode::kDataLoss,
//                                HasSubstr("byte 12")));
//   ASSERT_OK_AND_ASSIGN(const auto value, result);
//
// Messages are compared as std::string: this GoogleTest prints Abseil's views
// as lists of characters.

#ifndef LIB_TESTING_STATUS_MATCHERS_H_
#define LIB_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe::testing {

inline const absl::Status& GetStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).ok();
}

MATCHER_P(IsOkAndHolds, inner, "is OK and holds the value") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(inner, *arg, result_listener);
}

MATCHER_P2(StatusIs, code, message, "has the code and the message") {
  const absl::Status& status = GetStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()),
                                       result_listener);
}

}  // namespace firstframe::testing

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_(FF_TEST_CONCAT_(ff_result_, __LINE__), lhs, expr)
#define FF_TEST_CONCAT_INNER_(a, b) a##b
#define FF_TEST_CONCAT_(a, b) FF_TEST_CONCAT_INNER_(a, b)
#define ASSERT_OK_AND_ASSIGN_(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  ASSERT_TRUE(tmp.ok()) << tmp.status();      \
  lhs = *std::move(tmp)

#endif  // LIB_TESTING_STATUS_MATCHERS_H_
