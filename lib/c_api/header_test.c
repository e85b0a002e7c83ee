/* The header is C11, and a C program gets through the whole of one trace. */

#include <stdio.h>
#include <string.h>

#include "lib/c_api/firstframe.h"

#define EXPECT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, \
              ff_last_error());                                           \
      return 1;                                                           \
    }                                                                     \
  } while (0)

int main(void) {
  const float values[6] = {1, -2, 3, -4, 5, -6};
  const int64_t shape[2] = {2, 3};
  ff_tensor tensor = {sizeof(ff_tensor), values, FF_F32, 2, shape, NULL,
                      FF_HOST,           NULL};
  ff_stats stats = {sizeof(ff_stats)};
  ff_phase_recorder* recorder = NULL;
  ff_phase_collector* collector = NULL;
  ff_phase* phase = NULL;
  char* json = NULL;

  EXPECT(ff_abi_version() == FIRSTFRAME_ABI_VERSION);
  EXPECT(strncmp(ff_version(), "firstframe ", 11) == 0);

  EXPECT(ff_phase_recorder_create(NULL, NULL, &recorder) == FF_OK);
  EXPECT(ff_phase_collector_open(recorder, "main", &collector) == FF_OK);
  EXPECT(ff_phase_begin("statistics", &phase) == FF_OK);
  EXPECT(ff_stats_compute(&tensor, 0, &stats) == FF_OK);
  EXPECT(ff_phase_end(phase, NULL) == FF_OK);
  EXPECT(ff_phase_collector_close(collector) == FF_OK);
  EXPECT(ff_phase_recorder_json(recorder, &json) == FF_OK);
  EXPECT(strstr(json, "\"name\":\"statistics\"") != NULL);
  ff_free(json);
  EXPECT(ff_phase_recorder_destroy(recorder) == FF_OK);

  EXPECT(stats.sum == -3.0);
  EXPECT(stats.torch_abs_mean == 3.5f);

  tensor.dtype = 99;
  EXPECT(ff_stats_compute(&tensor, 0, &stats) == FF_INVALID_ARGUMENT);
  EXPECT(strstr(ff_last_error(), "dtype is 99") != NULL);
  return 0;
}
