#include "lib/activation/detection_limits.h"

#include <algorithm>

namespace firstframe {
namespace {

void Widen(DetectionLimits::Range* range, double value, bool is_first) {
  range->low = is_first ? value : std::min(range->low, value);
  range->high = std::max(range->high, value);
}

}  // namespace

std::vector<DetectionLimits> FindDetectionLimits(const Alignment& alignment,
                                                 const Divergence& divergence) {
  std::vector<DetectionLimits> limits(alignment.templates.size());
  // Behind a divergence its own error is what is usual.
  const size_t end =
      divergence.first ? *divergence.first + 1 : divergence.rows.size();
  for (size_t i = 0; i < end; ++i) {
    const RowVerdict& v = divergence.rows[i];
    if (!v.Has(RowVerdict::kDiffers)) continue;
    const TraceRow& row = alignment.a.table.rows[alignment.pairs[i].a];
    DetectionLimits& limit =
        limits[alignment.entities[alignment.entity_a[row.key]].template_id];
    const bool is_first = limit.pairs++ == 0;
    limit.fired += v.Fires();
    Widen(&limit.statistics, *DetectionLimit(v, kCoherent, divergence.options),
          is_first);
    if (const auto elements = DetectionLimit(v, kEnergy, divergence.options)) {
      const bool is_first_sketch = !limit.elements.has_value();
      if (is_first_sketch) limit.elements.emplace();
      Widen(&*limit.elements, *elements, is_first_sketch);
    }
    limit.worst_statistics =
        std::max<double>(limit.worst_statistics, v.coherent);
    limit.worst_elements = std::max<double>(limit.worst_elements, v.energy);
  }
  for (size_t i = 0; i < limits.size(); ++i) {
    limits[i].template_name = alignment.templates[i];
  }
  limits.erase(
      std::remove_if(limits.begin(), limits.end(),
                     [](const DetectionLimits& x) { return x.pairs == 0; }),
      limits.end());
  std::stable_sort(limits.begin(), limits.end(),
                   [](const DetectionLimits& x, const DetectionLimits& y) {
                     return x.statistics.high > y.statistics.high;
                   });
  return limits;
}

}  // namespace firstframe
