#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "lib/safetensors/testing/case_builder.h"

namespace firstframe::testing {
namespace {

void AddFields(Cases& cases) {
  RefuseJson(cases, "entry_null", "entry_not_object", R"({"a":null})");
  RefuseJson(cases, "entry_string", "entry_not_object", R"({"a":"F32"})");
  RefuseJson(cases, "entry_number", "entry_not_object", R"({"a":1})");
  Refuse(cases, "entry_array", "entry_not_object",
         BuildSafetensors(R"({"a":["F32",[1],[0,4]]})", 4), kReferenceAccepts);
  RefuseJson(cases, "entry_empty", "missing_field", R"({"a":{}})");
  RefuseJson(cases, "no_dtype", "missing_field",
             Entry("\"dtype\":\"F32\",", ""));
  RefuseJson(cases, "no_shape", "missing_field", Entry("\"shape\":[1],", ""));
  RefuseJson(cases, "no_offsets", "missing_field",
             Entry(",\"data_offsets\":[0,4]", ""));
  RefuseJson(cases, "dtype_twice", "duplicate_field",
             Entry("\"F32\"", "\"F32\",\"dtype\":\"F32\""));
  RefuseJson(cases, "shape_twice", "duplicate_field",
             Entry("[1]", "[1],\"shape\":[1]"));
  RefuseJson(cases, "offsets_twice", "duplicate_field",
             Entry("[0,4]", "[0,4],\"data_offsets\":[0,4]"));
  RefuseJson(cases, "dtype_upper_case_key", "missing_field",
             Entry("\"dtype\"", "\"Dtype\""));
  Accept(cases, "field_extra",
         BuildSafetensors(
             Entry("[0,4]", "[0,4],\"note\":{\"k\":[1,-2.5e3,true,null]}"), 4),
         "unknown_field");
  Accept(cases, "fields_in_other_order",
         BuildSafetensors(
             R"({"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}})", 4));
  Accept(cases, "escaped_field_name",
         BuildSafetensors(Entry("\"dtype\"", R"("\u0064type")"), 4));
}

void AddDTypes(Cases& cases) {
  RefuseJson(cases, "dtype_lower_case", "unknown_dtype", Entry("F32", "f32"));
  RefuseJson(cases, "dtype_unknown", "unknown_dtype", Entry("F32", "F33"));
  RefuseJson(cases, "dtype_torch_name", "unknown_dtype",
             Entry("F32", "torch.float32"));
  RefuseJson(cases, "dtype_empty", "unknown_dtype", Entry("F32", ""));
  RefuseJson(cases, "dtype_with_space", "unknown_dtype", Entry("F32", "F32 "));
  RefuseJson(cases, "dtype_null", "bad_dtype", Entry("\"F32\"", "null"));
  RefuseJson(cases, "dtype_number", "bad_dtype", Entry("\"F32\"", "4"));
  Refuse(cases, "dtype_object", "bad_dtype",
         BuildSafetensors(Entry("\"F32\"", R"({"F32":null})"), 4),
         kReferenceAccepts);
  const struct {
    absl::string_view dtype;
    int elements, bytes;
  } kAll[] = {{"BOOL", 1, 1},        {"F4", 2, 1},          {"F6_E2M3", 4, 3},
              {"F6_E3M2", 4, 3},     {"U8", 1, 1},          {"I8", 1, 1},
              {"F8_E5M2", 1, 1},     {"F8_E4M3", 1, 1},     {"F8_E8M0", 1, 1},
              {"F8_E4M3FNUZ", 1, 1}, {"F8_E5M2FNUZ", 1, 1}, {"I16", 1, 2},
              {"U16", 1, 2},         {"F16", 1, 2},         {"BF16", 1, 2},
              {"I32", 1, 4},         {"U32", 1, 4},         {"F32", 1, 4},
              {"C64", 1, 8},         {"F64", 1, 8},         {"I64", 1, 8},
              {"U64", 1, 8}};
  for (const auto& each : kAll) {
    Accept(cases, absl::StrCat("dtype_", each.dtype),
           BuildSafetensors(
               absl::StrCat(R"({"a":{"dtype":")", each.dtype, R"(","shape":[)",
                            each.elements, R"(],"data_offsets":[0,)",
                            each.bytes, "]}}"),
               each.bytes));
  }
}

void AddShapes(Cases& cases) {
  const struct {
    absl::string_view name, shape;
  } kBad[] = {{"negative", "[-1]"},      {"minus_zero", "[-0]"},
              {"fraction", "[1.0]"},     {"exponent", "[1e0]"},
              {"true", "[true]"},        {"string", "[\"1\"]"},
              {"null_inside", "[null]"}, {"nested", "[[1]]"},
              {"null", "null"},          {"scalar", "1"},
              {"object", "{}"},          {"over_u64", "[18446744073709551616]"},
              {"leading_zero", "[01]"},  {"plus", "[+1]"},
              {"hex", "[0x1]"}};
  for (const auto& bad : kBad) {
    RefuseJson(cases, absl::StrCat("shape_", bad.name), "bad_shape",
               Entry("[1]", bad.shape));
  }
  RefuseJson(cases, "shape_2_63_4_0", "size_overflow",
             Entry("[1]", "[9223372036854775808,4,0]"));
  Accept(
      cases, "shape_0_2_63_4",
      BuildSafetensors(R"({"a":{"dtype":"F32","shape":[0,9223372036854775808,)"
                       R"(4],"data_offsets":[0,0]}})",
                       0));
  RefuseJson(cases, "shape_2_62_u8", "size_overflow",
             absl::StrReplaceAll(Entry("[1]", "[4611686018427387904]"),
                                 {{"F32", "U8"}}));
  RefuseJson(cases, "shape_2_62_f32_wraps_to_0", "size_overflow",
             absl::StrReplaceAll(Entry("[1]", "[4611686018427387904]"),
                                 {{"[0,4]", "[0,0]"}}));
  RefuseJson(cases, "size_too_small", "size_mismatch", Entry("[1]", "[2]"));
  RefuseJson(cases, "size_too_large", "size_mismatch", Entry("[1]", "[0]"));
  RefuseJson(cases, "size_of_scalar", "size_mismatch",
             absl::StrReplaceAll(Entry("[1]", "[]"), {{"F32", "F64"}}));
  RefuseJson(cases, "f4_odd", "partial_byte",
             R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})");
  RefuseJson(cases, "f6_two", "partial_byte",
             R"({"a":{"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]}})");
  Accept(cases, "f4_odd_last_dimension_even_total",
         BuildSafetensors(
             R"({"a":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}})", 3));
  const std::string ones64 = "[1" + Repeat(",1", 63) + "]";
  Accept(cases, "rank_64", BuildSafetensors(Entry("[1]", ones64), 4));
  Refuse(cases, "rank_65", "rank_over_limit",
         BuildSafetensors(Entry("[1]", "[1" + Repeat(",1", 64) + "]"), 4),
         kReferenceAccepts);
  Refuse(cases, "rank_2000", "rank_over_limit",
         BuildSafetensors(Entry("[1]", "[1" + Repeat(",1", 1999) + "]"), 4),
         kReferenceAccepts);
  Accept(cases, "scalar", BuildSafetensors(Entry("[1]", "[]"), 4));
}

void AddOffsets(Cases& cases) {
  const struct {
    absl::string_view name, offsets;
  } kBad[] = {
      {"float", "[0,4.0]"},    {"bool", "[0,true]"},
      {"string", "[0,\"4\"]"}, {"minus_zero", "[-0,4]"},
      {"negative", "[-4,0]"},  {"one", "[4]"},
      {"three", "[0,4,8]"},    {"none", "[]"},
      {"null", "null"},        {"object", "{\"begin\":0,\"end\":4}"},
      {"exponent", "[0,4e0]"}, {"over_u64", "[0,18446744073709551616]"}};
  for (const auto& bad : kBad) {
    RefuseJson(cases, absl::StrCat("offsets_", bad.name), "bad_offsets",
               Entry("[0,4]", bad.offsets));
  }
  RefuseJson(cases, "offsets_reversed", "end_before_begin",
             Entry("[0,4]", "[4,0]"));
  RefuseJson(cases, "offsets_u64_max", "size_mismatch",
             Entry("[0,4]", "[0,18446744073709551615]"));
  Refuse(cases, "hole_in_front", "hole",
         BuildSafetensors(Entry("[0,4]", "[4,8]"), 8));
  Refuse(cases, "hole_between", "hole",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
             12));
  Refuse(cases, "overlap", "overlap",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
             12));
  Refuse(cases, "alias", "overlap",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             4));
  Refuse(cases, "zero_size_inside_another", "overlap",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
             R"("z":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
             8));
  Refuse(cases, "zero_size_past_end", "hole",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("z":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
             4));
}

void AddLayouts(Cases& cases) {
  Accept(cases, "no_tensors", BuildSafetensors("{}", 0));
  Accept(cases, "metadata_only",
         BuildSafetensors(R"({"__metadata__":{"format":"pt"}})", 0));
  Accept(cases, "zero_size_only",
         BuildSafetensors(
             R"({"z":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}})", 0));
  Accept(cases, "zero_size_first",
         BuildSafetensors(
             R"({"z":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             4));
  Accept(cases, "zero_size_after_neighbour",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("z":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
             4));
  Accept(cases, "zero_size_between",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("z":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},)"
             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
             8));
  Accept(cases, "unsorted",
         BuildSafetensors(
             R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             8));
  Accept(cases, "misaligned_f32_after_u8",
         BuildSafetensors(
             R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}})",
             7));
}

void AddNames(Cases& cases) {
  Refuse(cases, "name_twice_same_entry", "duplicate_name",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             4),
         kReferenceAccepts);
  Refuse(cases, "name_twice_escaped", "duplicate_name",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("\u0061":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
             4),
         kReferenceAccepts);
  Refuse(cases, "name_twice_next_to_each_other", "duplicate_name",
         BuildSafetensors(
             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
             8));
  Accept(cases, "name_empty", BuildSafetensors(Entry("\"a\"", "\"\""), 4));
  Refuse(cases, "name_with_nul", "nul_in_name",
         BuildSafetensors(Entry("\"a\"", R"("a\u0000b")"), 4),
         kReferenceAccepts, Verdict::kLenientOnly);
  Accept(cases, "name_is_a_path",
         BuildSafetensors(Entry("\"a\"", R"("../../etc/passwd")"), 4));
  Accept(cases, "name_of_1_mib",
         BuildSafetensors(
             Entry("\"a\"", "\"" + std::string(1 << 20, 'n') + "\""), 4));
  Accept(cases, "name_escaped",
         BuildSafetensors(
             Entry("\"a\"", R"("\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")"), 4));
  Accept(cases, "name_in_utf8",
         BuildSafetensors(Entry("\"a\"", "\"\xC3\xA9\xF0\x9F\x98\x80\""), 4));
  Accept(cases, "names_differ_in_case",
         BuildSafetensors(
             R"({"A":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
             R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
             8));
}

void AddMetadata(Cases& cases) {
  const auto with = [](absl::string_view metadata) {
    return Entry("{\"a\"",
                 absl::StrCat("{\"__metadata__\":", metadata, ",\"a\""));
  };
  Accept(cases, "metadata", BuildSafetensors(with(R"({"format":"pt"})"), 4));
  Accept(cases, "metadata_empty", BuildSafetensors(with("{}"), 4));
  Accept(cases, "metadata_last",
         BuildSafetensors(Entry("[0,4]}", R"([0,4]},"__metadata__":{"k":"v"})"),
                          4));
  RefuseJson(cases, "metadata_integer", "metadata_not_string",
             with(R"({"step":3})"));
  RefuseJson(cases, "metadata_nested", "metadata_not_string",
             with(R"({"config":{"a":"b"}})"));
  RefuseJson(cases, "metadata_null_value", "metadata_not_string",
             with(R"({"k":null})"));
  RefuseJson(cases, "metadata_bool", "metadata_not_string",
             with(R"({"k":true})"));
  RefuseJson(cases, "metadata_list", "metadata_not_map", with("[]"));
  RefuseJson(cases, "metadata_string", "metadata_not_map", with("\"pt\""));
  Refuse(cases, "metadata_null", "metadata_null",
         BuildSafetensors(with("null"), 4), kReferenceAccepts,
         Verdict::kLenientOnly);
  RefuseJson(cases, "metadata_twice", "duplicate_metadata",
             Entry("{\"a\"", R"({"__metadata__":{},"__metadata__":{},"a")"));
  Refuse(cases, "metadata_key_twice", "metadata_duplicate_key",
         BuildSafetensors(with(R"({"k":"1","k":"2"})"), 4), kReferenceAccepts);
  RefuseJson(cases, "tensor_called_metadata", "metadata_not_string",
             Entry("\"a\"", "\"__metadata__\""));
  RefuseJson(cases, "metadata_trailing_comma", "json_syntax",
             with(R"({"k":"v",})"));
}

}  // namespace

void AddEntryCases(Cases& cases) {
  AddFields(cases);
  AddDTypes(cases);
  AddShapes(cases);
  AddOffsets(cases);
  AddLayouts(cases);
  AddNames(cases);
  AddMetadata(cases);
}

}  // namespace firstframe::testing
