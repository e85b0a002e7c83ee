#include "lib/base/glob.h"

#include <string>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

struct Case {
  const char* pattern;
  const char* text;
  bool matches;
};

TEST(Glob, Matches) {
  const Case kCases[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "anything", true},
      {"training_*", "training_step", true},
      {"training_*", "inference", false},
      {"*_forward", "distillation_teacher_forward", true},
      {"*a*b*c", "xxaybzc", true},
      {"*a*b*c", "xxaybz", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"[a-c]x", "bx", true},
      {"[!a-c]x", "bx", false},
      {"[!a-c]x", "dx", true},
      {"[]]", "]", true},
      {"[ab", "[ab", true},
      {"[ab", "a", false},
      {"a**b", "ab", true},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(GlobMatch(c.pattern, c.text), c.matches)
        << c.pattern << " against " << c.text;
  }
}

TEST(Glob, ManyStarsStayFast) {
  const std::string text(5000, 'a');
  EXPECT_FALSE(GlobMatch("*a*a*a*a*a*a*a*a*a*a*b", text));
}

TEST(Glob, IsGlob) {
  EXPECT_TRUE(IsGlob("a*"));
  EXPECT_TRUE(IsGlob("a?"));
  EXPECT_TRUE(IsGlob("[a]"));
  EXPECT_FALSE(IsGlob("training_step"));
}

}  // namespace
}  // namespace firstframe
