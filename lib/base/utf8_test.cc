#include "lib/base/utf8.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(Utf8, EveryCodePointRoundTripsExceptSurrogates) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    AppendUtf8(c, &text);
    const bool is_surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(Utf8SequenceLength(text), is_surrogate ? 0 : text.size()) << c;
  }
}

TEST(Utf8, RefusesMalformedSequences) {
  for (const std::string text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41",
        "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(Utf8SequenceLength(text), 0u) << ::testing::PrintToString(text);
  }
}

TEST(Utf8, FindsTheFirstBadByteAtEveryOffset) {
  for (size_t offset = 0; offset < 40; ++offset) {
    std::string text(40, 'a');
    EXPECT_EQ(FindInvalidUtf8(text), text.size());
    text[offset] = '\xFF';
    EXPECT_EQ(FindInvalidUtf8(text), offset);
  }
  EXPECT_EQ(FindInvalidUtf8("caf\xC3\xA9 \xF0\x9F\x8E\xAC"), 10u);
  EXPECT_EQ(FindInvalidUtf8("caf\xC3"), 3u);
}

TEST(Utf8, ReplacesWhatIsNotWellFormed) {
  EXPECT_EQ(ToValidUtf8(""), "");
  EXPECT_EQ(ToValidUtf8("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(ToValidUtf8("\xFF"
                        "a\xC3"),
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace firstframe
