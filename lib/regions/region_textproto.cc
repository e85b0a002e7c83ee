#include "lib/regions/region_textproto.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "lib/regions/region.pb.h"

namespace firstframe {
namespace {

// Keeps the first error; protobuf counts lines and columns from 0.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(absl::string_view where) : where_(where) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!message_.empty()) return;
    message_ =
        absl::StrCat(where_, ":", line + 1, ":", column + 1, ": ", message);
  }
  const std::string& message() const { return message_; }

 private:
  const absl::string_view where_;
  std::string message_;
};

}  // namespace

absl::StatusOr<std::vector<Region>> ParseRegionTextproto(
    absl::string_view text, absl::string_view where) {
  RegionRegistryProto proto;
  FirstError error(where);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  google::protobuf::io::ArrayInputStream input(text.data(),
                                               static_cast<int>(text.size()));
  if (!parser.Parse(&input, &proto)) {
    return absl::DataLossError(
        error.message().empty() ? absl::StrCat(where, ": not a region registry")
                                : error.message());
  }
  std::vector<Region> regions;
  regions.reserve(proto.region_size());
  for (const RegionProto& from : proto.region()) {
    regions.push_back({.name = from.name(),
                       .description = from.description(),
                       .owner = from.owner(),
                       .since = from.since(),
                       .aliases = {from.alias().begin(), from.alias().end()},
                       .deprecated = from.deprecated()});
  }
  return regions;
}

}  // namespace firstframe
