// The JSON of a safetensors header, entry by entry. Internal to header.cc.

#ifndef LIB_SAFETENSORS_HEADER_PARSER_H_
#define LIB_SAFETENSORS_HEADER_PARSER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "lib/safetensors/finding.h"
#include "lib/safetensors/header.h"
#include "lib/safetensors/json_cursor.h"

namespace firstframe {

class HeaderParser {
 public:
  // Reads `json`, which begins at byte 8 of the file and is UTF-8, into
  // `*header` and `*sink`.
  HeaderParser(absl::string_view json, Strictness strictness,
               SafetensorsHeader* header, FindingSink* sink)
      : json_(json),
        strictness_(strictness),
        header_(header),
        sink_(sink),
        cursor_(json, kHeaderPrefixSize) {}

  // A mistake in the JSON ends the pass; a mistake in an entry's meaning does
  // not.
  void Parse();

 private:
  struct Field {
    uint64_t position = 0;  // of the key
    uint64_t value_position = 0;
    bool seen = false;
  };
  struct Entry {
    Field dtype, shape, data_offsets;
    std::optional<DType> type;
    uint64_t num_elements = 1;
    bool is_sound = true;  // no finding about its meaning so far
  };

  bool ParseObject();
  bool ParseMember();
  bool CheckName(absl::string_view name, uint64_t position);
  bool ParseMetadata(uint64_t position);
  bool ParseMetadataMember();
  bool ParseEntry(absl::string_view name, uint64_t position);
  bool ParseField(Entry& entry, SafetensorsTensor& tensor);
  bool ParseDTypeField(Entry& entry, const SafetensorsTensor& tensor);
  bool ParseShape(Entry& entry, SafetensorsTensor& tensor);
  bool ParseOffsets(SafetensorsTensor& tensor);
  bool HasAllFields(const Entry& entry, const SafetensorsTensor& tensor,
                    uint64_t end_position);
  void CheckSize(Entry& entry, const SafetensorsTensor& tensor);
  bool CheckEnd();

  // Reports under `rule` what the cursor stumbled over. Always false.
  bool Refuse(absl::string_view rule, absl::string_view tensor);
  bool RefuseNext(absl::string_view rule, absl::string_view tensor,
                  absl::string_view expected);

  const absl::string_view json_;
  const Strictness strictness_;
  SafetensorsHeader* const header_;
  FindingSink* const sink_;
  JsonCursor cursor_;
  absl::flat_hash_map<absl::string_view, uint64_t> names_;  // to positions
  absl::flat_hash_map<absl::string_view, uint64_t> metadata_keys_;
  std::optional<uint64_t> metadata_position_;
};

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_HEADER_PARSER_H_
