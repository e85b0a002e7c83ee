#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/activation/foreign_emitter.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr double kSevenDigits = 5e-7;  // what "{:.6e}" leaves out at most

// One "[MODULE/op_N_NAME]" and what follows it.
struct Block {
  std::string module, op, dtype;
  bool is_backward = false;
  bool has_shape = false;
  std::vector<int64_t> shape;
  std::vector<std::pair<std::string, double>> numbers;
};

// "torch.Size([2, 3])" or "[2, 3]".
std::vector<int64_t> ShapeOf(absl::string_view text) {
  absl::ConsumePrefix(&text, "torch.Size(");
  absl::ConsumeSuffix(&text, ")");
  return ReadJsonShape(text);
}

// Norms are of all elements: with the shape known, means.
void AddNumber(absl::string_view key, double number, Block* block) {
  const double numel = block->has_shape ? NumelOf(block->shape) : 0;
  if (key == "min" || key == "max" || key == "mean") {
    block->numbers.emplace_back(key, number);
  } else if (numel > 0 && (key == "l1 norm" || key == "l1" ||
                           key == "output hash" || key == "hash")) {
    block->numbers.emplace_back("abs_mean", number / numel);
  } else if (numel > 0 && (key == "l2 norm" || key == "l2")) {
    block->numbers.emplace_back("rms", number / std::sqrt(numel));
  }
}

absl::Status Finish(const Block& block, ForeignEmitter* out) {
  if (block.op.empty()) return absl::OkStatus();
  ForeignRecord record(block.module.empty()
                           ? block.op
                           : absl::StrCat(block.module, ".", block.op),
                       block.is_backward ? "grad_out" : "out", std::nullopt);
  for (const auto& [key, value] : block.numbers) record.Number(key, value);
  if (block.has_shape) record.Shape(block.shape);
  if (!block.dtype.empty()) record.Dtype(block.dtype);
  record.Precision("stat_rel", kSevenDigits);
  return out->Emit(record);
}

}  // namespace

absl::Status ReadTorchtitan(absl::string_view text, ForeignEmitter* out) {
  FF_ASSIGN_OR_RETURN(
      const auto header,
      CompileRegex(R"re(^\[(?:(\S*)/)?op_\d+_([^\]\s]+)\]$)re"));
  FF_ASSIGN_OR_RETURN(
      const auto shape_and_dtype,
      CompileRegex(R"re((?i)^Shape:\s*(.*?)\s*(?:,\s*Dtype:\s*(\S+))?$)re"));
  FF_ASSIGN_OR_RETURN(
      const auto field,
      CompileRegex(R"re(^([A-Za-z][A-Za-z0-9 _]*?)\s*[:=]\s*(.+)$)re"));
  Block block;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    std::string module, op, key, value;
    if (RE2::FullMatch(ToRe2(line), *header, &module, &op)) {
      FF_RETURN_IF_ERROR(Finish(block, out));
      block = Block();
      block.module = module;
      block.op = op;
      continue;
    }
    if (block.op.empty()) {
      out->counts.skipped += !line.empty();
      continue;
    }
    if (RE2::FullMatch(ToRe2(line), *shape_and_dtype, &value, &key)) {
      block.shape = ShapeOf(value);
      block.has_shape = true;
      if (!key.empty()) block.dtype = key;
      continue;
    }
    if (!RE2::FullMatch(ToRe2(line), *field, &key, &value)) {
      out->counts.skipped += !line.empty();
      continue;
    }
    key = absl::AsciiStrToLower(key);
    double number = 0;
    if (key == "dtype") {
      block.dtype = value;
    } else if (key == "phase") {
      block.is_backward = value == "backward";
    } else if (absl::SimpleAtod(value, &number)) {
      AddNumber(key, number, &block);
    }
  }
  FF_RETURN_IF_ERROR(Finish(block, out));
  if (out->counts.records == 0) {
    return absl::DataLossError(
        "torchtitan log: no block like '[layers.0.attention/op_1_mm]'");
  }
  return absl::OkStatus();
}

}  // namespace firstframe
