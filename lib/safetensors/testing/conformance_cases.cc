#include "lib/safetensors/testing/conformance_cases.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/safetensors/testing/case_builder.h"

namespace firstframe::testing {
namespace {

void AddSizes(Cases& cases) {
  const std::string good = BuildSafetensors(Entry("", ""), 4);
  Refuse(cases, "empty_file", "file_too_small", "");
  Refuse(cases, "seven_bytes", "file_too_small", std::string(7, '\0'));
  Refuse(cases, "eight_zeros", "empty_header", std::string(8, '\0'));
  Refuse(cases, "all_zeros", "empty_header", std::string(4096, '\0'));
  Refuse(cases, "length_0_with_text", "empty_header",
         HeaderLength(0) + Entry("", ""));
  Refuse(cases, "length_100000001", "header_over_limit",
         HeaderLength(100'000'001) + "{}");
  Refuse(cases, "length_100000000_past_end", "header_past_end",
         HeaderLength(100'000'000) + "{}");
  Refuse(cases, "length_2_63", "header_over_limit",
         HeaderLength(uint64_t{1} << 63) + "{}");
  Refuse(cases, "length_all_ones", "header_over_limit",
         HeaderLength(~uint64_t{0}) + "{}");
  Refuse(cases, "length_overflows_with_8", "header_over_limit",
         HeaderLength(~uint64_t{0} - 7) + "{}");
  Refuse(cases, "length_big_endian", "header_over_limit",
         std::string("\0\0\0\0\0\0\0\x02", 8) + "{}");
  Accept(cases, "length_is_size_less_8", HeaderLength(2) + "{}");
  Refuse(cases, "length_is_size_less_7", "header_past_end",
         HeaderLength(3) + "{}");
  Refuse(cases, "length_one_less", "json_syntax",
         HeaderLength(Entry("", "").size() - 1) + good.substr(8));
  Refuse(cases, "length_one_more", "not_utf8",
         HeaderLength(Entry("", "").size() + 1) +
             good.substr(8, Entry("", "").size()) + std::string(4, '\xFF'));
  Refuse(cases, "data_short_by_1", "truncated_file",
         good.substr(0, good.size() - 1));
  Refuse(cases, "data_absent", "truncated_file",
         good.substr(0, good.size() - 4));
  Refuse(cases, "header_cut", "header_past_end", good.substr(0, 20));
  Refuse(cases, "length_alone", "header_past_end", good.substr(0, 8));
  Refuse(cases, "trailing_1_byte", "trailing_bytes", good + "x",
         kReferenceRefuses, Verdict::kLenientOnly);
  Refuse(cases, "trailing_newline", "trailing_bytes", good + "\n",
         kReferenceRefuses, Verdict::kLenientOnly);
  Refuse(cases, "two_files_joined", "trailing_bytes", good + good,
         kReferenceRefuses, Verdict::kLenientOnly);
  Refuse(cases, "trailing_no_tensors", "trailing_bytes",
         BuildSafetensors("{}", 16), kReferenceRefuses, Verdict::kLenientOnly);
}

void AddOtherFormats(Cases& cases) {
  Refuse(cases, "lfs_pointer", "lfs_pointer",
         absl::StrCat("version https://git-lfs.github.com/spec/v1\n"
                      "oid sha256:",
                      std::string(64, '4'), "\nsize 9608\n"));
  Refuse(cases, "zip", "zip_file",
         std::string("PK\x03\x04\x00\x00\x08\x08\x00\x00", 10) +
             std::string(64, 'z'));
  Refuse(cases, "zip_empty", "zip_file",
         std::string("PK\x05\x06", 4) + std::string(18, '\0'));
  Refuse(cases, "pickle", "pickle_file",
         std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20", 10) +
             std::string(64, 'p'));
  Refuse(cases, "gguf", "other_format",
         std::string("GGUF\x03\x00\x00\x00", 8) + std::string(64, '\0'));
  Refuse(cases, "html_page", "other_format",
         "<!DOCTYPE html><html><body>404</body></html>");
  Refuse(cases, "json_without_length", "other_format", Entry("", ""));
  // 0x80 0x02 is also a sound header length of 640.
  Accept(cases, "length_640_is_no_pickle",
         BuildSafetensors("{}" + std::string(638, ' '), 0));
}

void AddJson(Cases& cases) {
  const std::string good = Entry("", "");
  RefuseJson(cases, "one_space", "json_syntax", " ");
  RefuseJson(cases, "array", "json_syntax", "[]");
  RefuseJson(cases, "null", "json_syntax", "null");
  RefuseJson(cases, "number", "json_syntax", "3");
  RefuseJson(cases, "string", "json_syntax", "\"a\"");
  RefuseJson(cases, "text", "json_syntax", "hello, world");
  RefuseJson(cases, "unclosed", "json_syntax", good.substr(0, good.size() - 1));
  RefuseJson(cases, "closed_twice", "text_after_object", good + "}");
  RefuseJson(cases, "two_objects", "text_after_object", good + "{}");
  RefuseJson(cases, "text_after_object", "text_after_object", good + "  x");
  RefuseJson(cases, "metadata_after_object", "text_after_object",
             good + R"(,"__metadata__":{"format":"pt"})");
  RefuseJson(cases, "entry_closed_early", "text_after_object",
             R"({},"__metadata__":{"format":"pt"})");
  RefuseJson(cases, "byte_order_mark", "byte_order_mark",
             "\xEF\xBB\xBF" + good);
  RefuseJson(cases, "nul_padding", "nul_padding", good + std::string(3, '\0'));
  RefuseJson(cases, "nul_then_space", "nul_padding",
             good + std::string("\0 ", 2));
  RefuseJson(cases, "form_feed_padding", "text_after_object", good + "\f");
  RefuseJson(cases, "trailing_comma", "json_syntax", Entry("}}", "},}"));
  RefuseJson(cases, "trailing_comma_in_entry", "json_syntax",
             Entry("[0,4]", "[0,4],"));
  RefuseJson(cases, "trailing_comma_in_shape", "bad_shape",
             Entry("[1]", "[1,]"));
  RefuseJson(cases, "leading_comma", "json_syntax", Entry("{\"a\"", "{,\"a\""));
  RefuseJson(cases, "comment", "json_syntax", Entry("{\"a\"", "{/*c*/\"a\""));
  RefuseJson(cases, "single_quotes", "json_syntax", Entry("\"", "'"));
  RefuseJson(cases, "bare_key", "json_syntax", Entry("\"a\"", "a"));
  RefuseJson(cases, "number_as_key", "json_syntax", Entry("\"a\"", "1"));
  RefuseJson(cases, "missing_colon", "json_syntax", Entry("\"a\":", "\"a\" "));
  RefuseJson(cases, "missing_comma", "json_syntax",
             Entry("\"F32\",", "\"F32\" "));
  RefuseJson(cases, "nan_value", "json_syntax",
             Entry("[0,4]", "[0,4],\"x\":NaN"));
  RefuseJson(cases, "infinity_value", "json_syntax",
             Entry("[0,4]", "[0,4],\"x\":-Infinity"));
  RefuseJson(cases, "leading_zero_in_extra", "json_syntax",
             Entry("[0,4]", "[0,4],\"x\":01"));
  RefuseJson(cases, "tab_in_name", "json_syntax", Entry("\"a\"", "\"a\tb\""));
  RefuseJson(cases, "newline_in_name", "json_syntax",
             Entry("\"a\"", "\"a\nb\""));
  RefuseJson(cases, "raw_nul_in_name", "json_syntax",
             Entry("\"a\"", absl::string_view("\"a\0b\"", 5)));
  RefuseJson(cases, "bad_escape", "json_syntax", Entry("\"a\"", R"("\x41")"));
  RefuseJson(cases, "short_unicode_escape", "json_syntax",
             Entry("\"a\"", R"("\u12")"));
  RefuseJson(cases, "lone_high_surrogate", "json_syntax",
             Entry("\"a\"", R"("\ud800")"));
  RefuseJson(cases, "lone_low_surrogate", "json_syntax",
             Entry("\"a\"", R"("\udc00")"));
  RefuseJson(cases, "two_high_surrogates", "json_syntax",
             Entry("\"a\"", R"("\ud800\ud800")"));
  RefuseJson(cases, "unclosed_name", "json_syntax", R"({"a)");
  RefuseJson(cases, "ends_in_backslash", "json_syntax", R"({"a\)");
  RefuseJson(cases, "not_utf8", "not_utf8", Entry("\"a\"", "\"\xFF\""));
  RefuseJson(cases, "overlong_utf8", "not_utf8",
             Entry("\"a\"", "\"\xC1\x81\""));
  RefuseJson(cases, "surrogate_in_utf8", "not_utf8",
             Entry("\"a\"", "\"\xED\xA0\x80\""));
  RefuseJson(cases, "utf8_cut", "not_utf8", Entry("\"a\"", "\"\xE2\x82\""));
  RefuseJson(cases, "utf16", "json_syntax", std::string("{\0}\0", 4));
}

void AddDepth(Cases& cases) {
  // The header and the entry are two levels around the extra field.
  for (const int depth : {1, 124, 125, 126, 127, 128, 129, 100000}) {
    const std::string json = Entry(
        "[0,4]",
        absl::StrCat("[0,4],\"x\":", Repeat("[", depth), Repeat("]", depth)));
    const std::string name = absl::StrCat("nesting_", depth + 2);
    if (depth + 2 <= 127) {
      Accept(cases, name, BuildSafetensors(json, 4), "unknown_field");
    } else {
      RefuseJson(cases, name, "json_syntax", json);
    }
  }
}

void AddPadding(Cases& cases) {
  const std::string good = Entry("", "");
  Accept(cases, "plain", BuildSafetensors(good, 4));
  Accept(cases, "padded_with_spaces", BuildSafetensors(good + "     ", 4));
  Accept(cases, "padded_with_tabs", BuildSafetensors(good + "\t\t", 4));
  Accept(cases, "padded_with_newlines", BuildSafetensors(good + "\r\n\n", 4));
  Accept(cases, "spaces_inside",
         BuildSafetensors(
             absl::StrReplaceAll(good, {{":", " : "}, {",", " ,\n\t"}}), 4));
  Refuse(cases, "leading_space", "leading_space",
         BuildSafetensors(" " + good, 4), kReferenceAccepts,
         Verdict::kLenientOnly);
  Refuse(cases, "leading_newline", "leading_space",
         BuildSafetensors("\n" + good, 4), kReferenceAccepts,
         Verdict::kLenientOnly);
  Accept(cases, "header_not_aligned", BuildSafetensors(good + " ", 4));
}

}  // namespace

std::string HeaderLength(uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

std::string BuildSafetensors(absl::string_view json, uint64_t data_size) {
  std::string file = HeaderLength(json.size());
  absl::StrAppend(&file, json);
  for (uint64_t i = 0; i < data_size; ++i) {
    file.push_back(static_cast<char>(i + 1));
  }
  return file;
}

std::vector<ConformanceCase> ConformanceCases() {
  Cases cases;
  AddSizes(cases);
  AddOtherFormats(cases);
  AddJson(cases);
  AddDepth(cases);
  AddPadding(cases);
  AddEntryCases(cases);
  return cases;
}

}  // namespace firstframe::testing
