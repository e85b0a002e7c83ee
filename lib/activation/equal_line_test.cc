#include "lib/activation/equal_line.h"

#include <algorithm>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

// The same, byte by byte.
EqualLine FindSlowly(const std::string& a, const std::string& b) {
  const size_t limit = std::min(a.size(), b.size());
  for (size_t i = 0; i < limit / 32 * 32; ++i) {
    if (a[i] != b[i]) return {};
    if (a[i] == '\n') {
      return {i, static_cast<int>(std::count(a.begin(), a.begin() + i, ':'))};
    }
    const bool is_odd = (a[i] == '{' && i > 0) || a[i] == '\\' || a[i] == 'N' ||
                        a[i] == 'I' || static_cast<signed char>(a[i]) < ' ';
    if (is_odd && i > 0) return {};
  }
  return {};
}

void ExpectSame(const std::string& a, const std::string& b) {
  const EqualLine expected = FindSlowly(a, b);
  for (const auto find : {&FindEqualLine, &FindEqualLineSse2}) {
    const EqualLine found =
        find(a.data(), b.data(), std::min(a.size(), b.size()));
    ASSERT_EQ(found.size, expected.size) << a << "\n" << b;
    ASSERT_EQ(found.colons, expected.colons) << a;
  }
}

TEST(FindEqualLine, IsWhatALoopOverBytesFinds) {
  std::mt19937 random(3);
  int num_found = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string a = "{";
    const size_t size = random() % 300;
    while (a.size() < size) a += "abc:,\" 0123}"[random() % 12];
    a += '\n';
    a.resize(a.size() + random() % 80, 'x');
    if (random() % 3 == 0) {
      a[random() % a.size()] = "{\\NI\t\r\x80\xFF"[random() % 8];
    }
    std::string b = a;
    if (random() % 3 == 0) b[random() % b.size()] ^= 1;
    ExpectSame(a, b);
    num_found += FindSlowly(a, b).size > 0;
  }
  EXPECT_GT(num_found, 4000);
}

TEST(FindEqualLine, FindsNothingInNothing) {
  EXPECT_EQ(FindEqualLine("", "", 0).size, 0u);
}

}  // namespace
}  // namespace firstframe
