#include "lib/activation/control_levels.h"

#include <algorithm>
#include <vector>

#include "lib/activation/pair_metrics.h"

namespace firstframe {
namespace {

double MedianOf(std::vector<float>* values) {
  if (values->empty()) return 0;
  const auto middle = values->begin() + values->size() / 2;
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

ControlLevels MeasureControl(const Alignment& alignment) {
  std::vector<std::vector<float>> coherent(alignment.templates.size());
  std::vector<std::vector<float>> energy(alignment.templates.size());
  for (const RowPair& pair : alignment.pairs) {
    const PairMetrics m = ComparePair(alignment.a, pair.a, alignment.b, pair.b);
    const uint32_t tau =
        alignment
            .entities[alignment.entity_a[alignment.a.table.rows[pair.a].key]]
            .template_id;
    coherent[tau].push_back(static_cast<float>(m.coherent));
    if (m.energy >= 0) energy[tau].push_back(static_cast<float>(m.energy));
  }
  ControlLevels levels;
  for (size_t tau = 0; tau < alignment.templates.size(); ++tau) {
    levels.by_template[alignment.templates[tau]] = {MedianOf(&coherent[tau]),
                                                    MedianOf(&energy[tau])};
  }
  return levels;
}

}  // namespace firstframe
