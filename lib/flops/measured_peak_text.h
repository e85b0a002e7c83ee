// Renderings of a MeasuredPeak beside the table's rates.

#ifndef LIB_FLOPS_MEASURED_PEAK_TEXT_H_
#define LIB_FLOPS_MEASURED_PEAK_TEXT_H_

#include <ostream>

#include "lib/base/json_writer.h"
#include "lib/flops/device_peaks.h"
#include "lib/flops/measured_peak.h"

namespace firstframe {

// `peaks` is the table in which the device is looked up. Rates over 100 % of it
// are flagged; a board without an entry, a MIG slice, a lowered power limit and
// what held the clock back are named.
void WriteMeasuredPeakText(const MeasuredPeak& peak, const DevicePeaks& peaks,
                           std::ostream& out);

// Writes members of the document's object: "device", "matrix_size", "samples",
// "copy_gb_per_s", "event_s", "wall_s", "notes".
void WriteMeasuredPeakJson(const MeasuredPeak& peak, const DevicePeaks& peaks,
                           JsonWriter& json);

}  // namespace firstframe

#endif  // LIB_FLOPS_MEASURED_PEAK_TEXT_H_
