#include "lib/base/text_width.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(TextWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth(""), 0u);
  EXPECT_EQ(DisplayWidth("vae.load"), 8u);
  EXPECT_EQ(DisplayWidth("d\xC3\xA9"
                         "code"),
            6u);
  EXPECT_EQ(DisplayWidth("e\xCC\x81"), 1u);  // e + combining acute
  EXPECT_EQ(DisplayWidth("\xE8\xA7\xA3\xE7\xA0\x81"),
            4u);                                    // two Han characters
  EXPECT_EQ(DisplayWidth("\xF0\x9F\x8E\xAC"), 2u);  // clapper board
}

TEST(TextWidth, PrintableTextMovesNoCursor) {
  EXPECT_EQ(PrintableText("a\x1b[2Jb\nc\xFF"),
            "a\xEF\xBF\xBD[2Jb\xEF\xBF\xBD"
            "c\xEF\xBF\xBD");
  EXPECT_EQ(PrintableText("d\xC3\xA9"), "d\xC3\xA9");
}

TEST(TextWidth, FitsExactly) {
  EXPECT_EQ(FitWidth("abc", 5), "abc  ");
  EXPECT_EQ(FitWidth("abc", 3), "abc");
  EXPECT_EQ(FitWidth("abcdefghij", 7, "~"), "abcd~ij");
  EXPECT_EQ(FitWidth("abcdefghij", 1, "~"), "~");
  EXPECT_EQ(FitWidth("abc", 0), "");
  const std::string han = "\xE8\xA7\xA3\xE7\xA0\x81\xE5\x99\xA8\xE7\xA0\x81";
  for (size_t width = 0; width < 12; ++width) {
    EXPECT_EQ(DisplayWidth(FitWidth(han, width)), width);
  }
}

}  // namespace
}  // namespace firstframe
