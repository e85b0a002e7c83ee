// Finds, for each record of one trace, its counterpart in another.
//
// The passes of docs/trace_diff.md: choose run and rank, canonical names, the
// map, exact keys, merging of parts, order, and signatures, which only suggest.

#ifndef LIB_ACTIVATION_ALIGN_H_
#define LIB_ACTIVATION_ALIGN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/activation/merge_rows.h"
#include "lib/activation/name_map.h"
#include "lib/activation/trace_pair.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

enum class MatchMethod : uint8_t {
  kExact,       // module, tensor, step and occurrence are equal
  kCanonical,   // equal once wrappers and index forms are
  kMapped,      // by a rule of the map
  kOccurrence,  // one side has no steps: by how often the name came before
  kMerged,      // several records of one side make one of the other
  kOrder,       // by leaf name, shape and place: fuzzy
};
absl::string_view MatchMethodName(MatchMethod method);
// Nothing below an exact key counts as a pass by itself.
inline bool IsFuzzy(MatchMethod method) {
  return method == MatchMethod::kOrder;
}

struct RowPair {
  uint32_t a = 0;
  uint32_t b = 0;
  MatchMethod method = MatchMethod::kExact;
};

// What a record is about, on both sides: a module's output.
struct Entity {
  std::string module;  // as the left trace writes it, else the right
  std::string tensor;
  uint32_t template_id = 0;
};

struct NameSuggestion {
  std::string a, b;
  std::string method;  // "order" or "signature"
};

struct AlignOptions {
  // "": the last run, with a warning when there are several; a number counts
  // from 0; else the records' "run".
  std::string run;
  std::optional<int> rank;
  bool merge_ranks = false;
  const NameMap* map_a = nullptr;  // left names to right ones; may be null
  const NameMap* map_b = nullptr;
  // Instead of both: from either side's names to the other's, whichever fits.
  const NameMap* preset = nullptr;
};

struct Alignment {
  TraceSide a, b;
  std::vector<RowPair> pairs;  // in the order of `a`
  // Lines that both have, each the counterpart of itself, in lieu of pairs.
  std::vector<EqualRun> runs;
  // By run: how many pairs stand before it, and lines of runs before it.
  std::vector<size_t> run_pairs;
  std::vector<uint64_t> run_lines;
  // Set: nothing is aligned; read the pair again in this way. Runs fit neither
  // maps, ranks, several runs of a file, one side without steps, nor
  // occurrences that do not agree; merging takes rows that are read.
  std::optional<EqualLines> wants;
  std::vector<uint32_t> unmatched_a, unmatched_b;
  // Records that the map says have no counterpart; in no list above.
  int64_t num_alone_a = 0, num_alone_b = 0;
  // Unread rows that were paired with another line than the one they equal:
  // their text says what they hold.
  std::vector<uint32_t> unread_a, unread_b;
  std::vector<Entity> entities;
  std::vector<std::string> templates;        // by Entity::template_id
  std::vector<uint32_t> entity_a, entity_b;  // by key
  std::vector<std::string> warnings;
  std::vector<NameSuggestion> suggestions;

  // How many records have a counterpart, those in runs included.
  uint64_t NumPaired() const;
  // How many of them stand before pairs[pair].
  uint64_t PairNumber(size_t pair) const;
};

// Takes both tables, which were read with these `names`. InvalidArgument when
// `run` or `rank` names nothing that is there.
absl::StatusOr<Alignment> AlignTraces(TracePair traces, const TraceNames& names,
                                      const AlignOptions& options);

// Returns `suggestions` as lines of a map, numbers generalised where both names
// have the same ones.
std::string SuggestedMap(const std::vector<NameSuggestion>& suggestions);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_H_
