// The tables of `flops --list` and `flops --peaks`.

#ifndef LIB_FLOPS_FLOPS_TABLES_H_
#define LIB_FLOPS_FLOPS_TABLES_H_

#include <ostream>

#include "lib/base/json_writer.h"
#include "lib/flops/device_peaks.h"

namespace firstframe {

// One line a model that is known by name; or the member "models".
void WriteKnownModelsText(std::ostream& out);
void WriteKnownModelsJson(JsonWriter& json);

// One line a board, unknown rates as "-"; or the member "devices", where they
// are null.
void WritePeaksText(const DevicePeaks& peaks, std::ostream& out);
void WritePeaksJson(const DevicePeaks& peaks, JsonWriter& json);

}  // namespace firstframe

#endif  // LIB_FLOPS_FLOPS_TABLES_H_
