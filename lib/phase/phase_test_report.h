// A report with every field in use, for the tests of formats and renderers.

#ifndef LIB_PHASE_PHASE_TEST_REPORT_H_
#define LIB_PHASE_PHASE_TEST_REPORT_H_

#include <limits>

#include "lib/phase/phase_record.h"

namespace firstframe {

inline PhaseReport MakePhaseTestReport() {
  return {.recording_duration_ns = 100'000'000,
          .lanes = {{.name = "main", .pid = 12, .tid = 12},
                    {.name = "reader 1", .pid = 12, .tid = 14}},
          .phases = {
              {.id = 0,
               .name = "process.exec",
               .duration_ns = 4'000'000,
               .attributes = {{"resolution_ns", int64_t{10'000'000}}}},
              {.id = 1,
               .name = "component.vae",
               .start_offset_ns = 20'000'000,
               .duration_ns = 40'000'000},
              {.id = 2,
               .parent_id = 1,
               .name = "vae.construct",
               .start_offset_ns = 20'000'000,
               .duration_ns = 10'000'000},
              {.id = 3,
               .parent_id = 1,
               .name = "vae.checkpoint_read",
               .start_offset_ns = 31'000'000,
               .duration_ns = 20'000'000,
               .status = PhaseStatus::kError,
               .error = "model.safetensors: \"short\" read\n</script>\xFF",
               .attributes = {{"rate_gb_per_s", 2.0},
                              {"largest", std::numeric_limits<int64_t>::max()},
                              {"path", std::string("d\xC3\xA9"
                                                   "codeur")}}},
              {.id = 4,
               .parent_id = 3,
               .name = "shard \xE8\xA7\xA3",
               .start_offset_ns = 31'000'000,
               .duration_ns = 19'000'000,
               .lane = 1},
              {.id = 5,
               .parent_id = 1,
               .name = "vae.finalize",
               .start_offset_ns = 60'000'000},
              {.id = 6,
               .name = "first_decode",
               .start_offset_ns = 60'000'000,
               .duration_ns = 40'000'000}}};
}

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_TEST_REPORT_H_
