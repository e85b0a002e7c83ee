/* Firstframe's C ABI: what libfirstframe.so offers to programs in any language.
 *
 *   ff_phase_recorder* recorder = NULL;
 *   if (ff_phase_recorder_create(NULL, NULL, &recorder) != FF_OK) {
 *     fprintf(stderr, "%s\n", ff_last_error());
 *   }
 *
 * Compiles as C11 and as C++. The rules of every call:
 *
 * - Anything that can fail returns an ff_status. On any but FF_OK outputs are
 *   untouched and ff_last_error() says, in this thread, where, what was found
 *   and what was expected. No exception crosses the border, nothing exits.
 * - Handles are opaque. What a *_create, *_open, *_begin or ff_load gives, the
 *   matching *_destroy, *_close, *_end or *_release takes back; NULL is taken
 *   back by doing nothing. Strings marked "ff_free" are the caller's.
 * - Strings in are NUL-terminated UTF-8, borrowed for the call.
 * - Sizes are in bytes, times in nanoseconds, shapes row-major, outermost
 *   dimension first, strides in elements; each unit is in the name.
 * - Thread-safe, except that scopes (collectors, phases, requests, stages,
 *   training phases) end on the thread that began them, innermost first:
 *   FF_FAILED_PRECONDITION otherwise, and the scope stays open.
 * - Structs begin with struct_size, to be set to sizeof of the struct: a later
 *   library reads no further than that.
 *
 * Within one FIRSTFRAME_ABI_VERSION symbols, enumerators and struct members are
 * only added.
 */
#ifndef LIB_C_API_FIRSTFRAME_H_
#define LIB_C_API_FIRSTFRAME_H_

#include <stddef.h>
#include <stdint.h>

#define FIRSTFRAME_ABI_VERSION 1

#define FF_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* --- library ------------------------------------------------------------ */

typedef enum ff_status {
  FF_OK = 0,
  FF_CANCELLED = 1,
  FF_INTERNAL = 2,
  FF_INVALID_ARGUMENT = 3,
  FF_DEADLINE_EXCEEDED = 4,
  FF_NOT_FOUND = 5,
  FF_ALREADY_EXISTS = 6,
  FF_PERMISSION_DENIED = 7,
  FF_RESOURCE_EXHAUSTED = 8, /* memory of the host or a device */
  FF_FAILED_PRECONDITION = 9,
  FF_ABORTED = 10, /* a file changed meanwhile */
  FF_OUT_OF_RANGE = 11,
  FF_UNIMPLEMENTED = 12, /* not in this build, or not for this input */
  FF_UNAVAILABLE = 14,   /* no driver or no device */
  FF_DATA_LOSS = 15      /* a malformed file */
} ff_status;

/* FIRSTFRAME_ABI_VERSION of the library that runs. */
FF_API int32_t ff_abi_version(void);
/* "firstframe 0.1.0 (commit ...)"; static. */
FF_API const char* ff_version(void);
/* Message of this thread's last failure; "" before any. Valid until the next
 * failure of this thread. */
FF_API const char* ff_last_error(void);
FF_API void ff_free(char* text);
/* Devices that CUDA sees: 0, and FF_OK, without a driver or in a build without
 * CUDA. Creates no context. */
FF_API ff_status ff_device_count(int32_t* count);

/* --- tensors ------------------------------------------------------------ */

/* The types of safetensors, in its order. */
/* clang-format off */
typedef enum ff_dtype {
  FF_BOOL = 0, FF_F4 = 1, FF_F6_E2M3 = 2, FF_F6_E3M2 = 3, FF_U8 = 4, FF_I8 = 5,
  FF_F8_E5M2 = 6, FF_F8_E4M3 = 7, FF_F8_E8M0 = 8, FF_F8_E4M3FNUZ = 9,
  FF_F8_E5M2FNUZ = 10, FF_I16 = 11, FF_U16 = 12, FF_F16 = 13, FF_BF16 = 14,
  FF_I32 = 15, FF_U32 = 16, FF_F32 = 17, FF_C64 = 18, FF_F64 = 19, FF_I64 = 20,
  FF_U64 = 21
} ff_dtype;
/* clang-format on */

#define FF_HOST (-1) /* in place of a device's ordinal */

/* A borrowed tensor. */
typedef struct ff_tensor {
  size_t struct_size;
  const void* data;
  int32_t dtype; /* ff_dtype */
  int32_t ndim;
  const int64_t* shape;   /* [ndim] */
  const int64_t* strides; /* [ndim], in elements; NULL: dense, row-major */
  int32_t device;         /* FF_HOST or a CUDA ordinal */
  void* stream; /* cudaStream_t that wrote it; NULL: the default one */
} ff_tensor;

/* --- phases: where start-up time goes ----------------------------------- */

typedef struct ff_phase_recorder ff_phase_recorder;
typedef struct ff_phase_collector ff_phase_collector;
typedef struct ff_phase ff_phase;

/* `synchronize`, when not NULL, is called with `argument` before each reading
 * of the clock, on the phase's thread: to wait for a device, say. */
FF_API ff_status ff_phase_recorder_create(void (*synchronize)(void*),
                                          void* argument,
                                          ff_phase_recorder** recorder);
/* FF_FAILED_PRECONDITION while a collector is open on it. */
FF_API ff_status ff_phase_recorder_destroy(ff_phase_recorder* recorder);
/* Sends this thread's phases to `recorder` until it is closed, then those
 * before take over again. `lane` names the row of the timeline ("main"). */
FF_API ff_status ff_phase_collector_open(ff_phase_recorder* recorder,
                                         const char* lane,
                                         ff_phase_collector** collector);
FF_API ff_status ff_phase_collector_close(ff_phase_collector* collector);
/* Gives NULL where nothing collects. */
FF_API ff_status ff_phase_begin(const char* name, ff_phase** phase);
FF_API ff_status ff_phase_set_int(ff_phase* phase, const char* name,
                                  int64_t value);
FF_API ff_status ff_phase_set_double(ff_phase* phase, const char* name,
                                     double value);
FF_API ff_status ff_phase_set_text(ff_phase* phase, const char* name,
                                   const char* value);
/* With `error` not NULL the phase failed for that reason. */
FF_API ff_status ff_phase_end(ff_phase* phase, const char* error);
/* The report so far (docs/formats/phases.md) as one JSON object; ff_free. */
FF_API ff_status ff_phase_recorder_json(const ff_phase_recorder* recorder,
                                        char** json);

/* --- profiler regions ---------------------------------------------------- */

typedef struct ff_region ff_region;
typedef struct ff_span ff_span;

/* Starts this process's profiler as FASTVIDEO_TORCH_PROFILER_* say, read with
 * `get` (NULL: getenv); `is_on` is 0 when they do not ask for one. Regions and
 * what the GPU does in selected ones go to a trace in the folder named there.
 * `messages` gets warnings, one a line, or NULL; ff_free. */
FF_API ff_status ff_profiler_start(const char* (*get)(const char* name),
                                   int32_t* is_on, char** messages);
/* Ends recording and writes the files; `messages` says where they are and what
 * was never entered, or is NULL; ff_free. Call it before exit. */
FF_API ff_status ff_profiler_stop(char** messages);
/* Gives NULL where no profiler runs. Any spelling of FastVideo's names. */
FF_API ff_status ff_region_begin(const char* name, ff_region** region);
FF_API ff_status ff_region_end(ff_region* region);
/* A span is a stretch of the trace with a name of its own, and an NVTX range;
 * it selects nothing. Names are kept, so they should be few. Gives NULL where
 * no profiler runs. */
FF_API ff_status ff_span_begin(const char* name, ff_span** span);
FF_API ff_status ff_span_end(ff_span* span);

/* --- statistics of tensors ---------------------------------------------- */

enum {
  FF_STATS_HASHES = 1,
  FF_STATS_SKETCH = 2,
  FF_STATS_EXPONENTS = 4,
  FF_STATS_SAMPLES = 8
};

/* Elements are read as float32 (the real part of complex ones), sums are kept
 * in float64; moments and extremes are over the finite elements, and
 * torch_* are what PyTorch gives for .float(): float32, NaN and infinities
 * propagate. Members without their flag are 0. */
typedef struct ff_stats {
  size_t struct_size;
  int64_t numel, nan, inf_pos, inf_neg, zero;
  double sum, abs_sum, mean, m2;
  float min, max, amax;
  int64_t amax_index; /* row-major; -1: nothing finite */
  float torch_sum, torch_abs_mean, torch_mean, torch_std, torch_min, torch_max;
  uint64_t h_set, h_pos;
  double sketch[64];
  int64_t exponents[256];
  float samples[32];
} ff_stats;

/* Reads `tensor` once; waits for a device's result. With strides other than
 * row-major it is copied first, on a device in the order of its stream.
 * FF_UNIMPLEMENTED for F4, F6 (and on a device F8_E8M0, FNUZ types). */
FF_API ff_status ff_stats_compute(const ff_tensor* tensor, uint32_t flags,
                                  ff_stats* stats);

/* --- activation traces -------------------------------------------------- */

/* FastVideo's five variables; NULL: unset. */
typedef struct ff_trace_settings {
  size_t struct_size;
  const char* activations; /* FASTVIDEO_TRACE_ACTIVATIONS */
  const char* layers;      /* FASTVIDEO_TRACE_LAYERS */
  const char* stats;       /* FASTVIDEO_TRACE_STATS */
  const char* output;      /* FASTVIDEO_TRACE_OUTPUT */
  const char* steps;       /* FASTVIDEO_TRACE_STEPS */
} ff_trace_settings;

typedef struct ff_tracer ff_tracer;

/* Opens the output. Gives NULL when the settings have tracing off. `warnings`
 * gets one a line, or NULL when there is none; ff_free. */
FF_API ff_status ff_tracer_create(const ff_trace_settings* settings,
                                  ff_tracer** tracer, char** warnings);
/* Selects among `count` module names; `message` says how many were attached or,
 * when none was, what could have been; ff_free. */
FF_API ff_status ff_tracer_attach(ff_tracer* tracer, const char* const* modules,
                                  size_t count, char** message);
FF_API int32_t ff_tracer_traces(const ff_tracer* tracer, const char* module);
/* Whether a record of step `*step` (NULL: of no step) would be kept. */
FF_API int32_t ff_tracer_wants(const ff_tracer* tracer, const int64_t* step);
/* Records one output. A device tensor's statistics run on its stream and are
 * written later, in the order of the calls; nothing waits. Measuring must not
 * break the run: a file that cannot be written is an error once. Otherwise
 * FF_UNIMPLEMENTED as for ff_stats_compute. */
FF_API ff_status ff_tracer_record(ff_tracer* tracer, const char* module,
                                  const char* label, const int64_t* step,
                                  const ff_tensor* tensor);
/* Waits for what is on its way and writes it. */
FF_API ff_status ff_tracer_flush(ff_tracer* tracer);
FF_API void ff_tracer_destroy(ff_tracer* tracer); /* flushes */

/* --- safetensors --------------------------------------------------------- */

typedef struct ff_checkpoint ff_checkpoint;

typedef struct ff_tensor_info {
  size_t struct_size;
  const char* name; /* these three live as long as the checkpoint */
  const int64_t* shape;
  void* data; /* 256-byte aligned */
  int32_t dtype;
  int32_t ndim;
  uint64_t size_bytes;
  int32_t device;
} ff_tensor_info;

/* Loads all of `path` (a file, an index, a component's folder) into one arena
 * of the library's in host memory (`device` FF_HOST) or on a device, and waits
 * for it. A pinned ring of at most 192 MiB is kept for the next load to a
 * device. */
FF_API ff_status ff_load(const char* path, int32_t device,
                         ff_checkpoint** checkpoint);
/* The bytes that ff_load_into needs for `path`. */
FF_API ff_status ff_load_size(const char* path, uint64_t* size_bytes);
/* The same into `size_bytes` of the caller's, 256-byte aligned, which must
 * outlive the checkpoint. */
FF_API ff_status ff_load_into(const char* path, int32_t device, void* arena,
                              uint64_t size_bytes, ff_checkpoint** checkpoint);
FF_API size_t ff_checkpoint_size(const ff_checkpoint* checkpoint);
FF_API ff_status ff_checkpoint_tensor(const ff_checkpoint* checkpoint,
                                      size_t index, ff_tensor_info* info);
/* Gives tensor `index` as a DLManagedTensor (DLPack 0.x; types that it has no
 * code for are one dimension of bytes, as is a type that torch cannot import).
 * It shares the arena and keeps it alive until its deleter is called, also when
 * the checkpoint was released before. */
struct DLManagedTensor;
FF_API ff_status ff_checkpoint_dlpack(const ff_checkpoint* checkpoint,
                                      size_t index,
                                      struct DLManagedTensor** tensor);
/* Calls the deleter: for a tensor that nobody imported. */
FF_API void ff_dlpack_delete(struct DLManagedTensor* tensor);
/* What the load did, as one JSON object; ff_free. */
FF_API ff_status ff_checkpoint_json(const ff_checkpoint* checkpoint,
                                    char** json);
FF_API void ff_checkpoint_release(ff_checkpoint* checkpoint);

/* --- frozen offload ------------------------------------------------------ */

typedef struct ff_offload ff_offload;

/* Keeps a frozen module of `count` tensors on the host between uses. They lie
 * in the caller's memory, which must outlive the offload, on the host (`device`
 * FF_HOST) or on one device; tied tensors have the same `data`. Without a
 * device loading and unloading do nothing. Not thread-safe: one offload, one
 * thread at a time. */
FF_API ff_status ff_offload_create(const ff_tensor_info* tensors, size_t count,
                                   ff_offload** offload);
/* Copies what is absent to `device`; `stream`, which will use it, waits for the
 * copies, the caller does not. The first time the tensors get page-locked host
 * copies. After an error every tensor is where it was. */
FF_API ff_status ff_offload_load(ff_offload* offload, int32_t device,
                                 void* stream);
/* Points the tensors at their host copies and frees the device memory once the
 * work on `stream` is done. Copies nothing back. */
FF_API ff_status ff_offload_unload(ff_offload* offload, void* stream);
FF_API ff_status ff_offload_wait(ff_offload* offload);
/* Where tensor `index` lies now; to be asked after each load and unload. */
FF_API ff_status ff_offload_place(const ff_offload* offload, size_t index,
                                  void** data, int32_t* device);
/* The places become invalid, but for the caller's own memory. */
FF_API void ff_offload_destroy(ff_offload* offload);

/* --- FLOP models --------------------------------------------------------- */

typedef struct ff_model ff_model;

/* A published name, a file or a folder (docs/tools/flops.md); its first
 * transformer. */
FF_API ff_status ff_model_open(const char* path, ff_model** model);
/* From tensor names and shapes alone: `ndims[i]` dimensions of tensor i, all
 * shapes one after the other in `dims`. `text_tokens` as the model advertises
 * them, or 0. */
FF_API ff_status ff_model_from_layout(const char* const* names,
                                      const int32_t* ndims, const int64_t* dims,
                                      size_t count, int64_t text_tokens,
                                      ff_model** model);
/* From sizes alone, for a program whose tensors no longer show them (sharded,
 * wrapped): `params` of the whole model, widths of query projections summed
 * over `attention_modules` that run over latents, by what their keys run over.
 */
FF_API ff_status ff_model_from_sizes(int64_t params, int64_t self_width,
                                     int64_t cross_width,
                                     int64_t attention_modules,
                                     int64_t text_tokens, ff_model** model);
FF_API ff_status ff_model_params(const ff_model* model, int64_t* params);
/* VideoX-Fun's figure for one forward on `tokens`, and the attention in it. */
FF_API ff_status ff_model_compat_flops(const ff_model* model, int64_t tokens,
                                       double* forward, double* attention);
/* The exact count of one forward on a batch of videos, as torch's counter has
 * it. FF_UNIMPLEMENTED for a model of no known family. */
FF_API ff_status ff_model_forward_flops(const ff_model* model, int64_t batch,
                                        int64_t frames, int64_t height,
                                        int64_t width, double* flops);
FF_API void ff_model_release(ff_model* model);
/* Dense bf16 peak of the device that its driver calls so. */
FF_API ff_status ff_device_peak_tflops(const char* device_name, double* tflops);

/* --- requests and training windows (VIDEOX_PERF) ------------------------- */

typedef struct ff_perf ff_perf;
typedef struct ff_request ff_request;
typedef struct ff_stage ff_stage;

typedef struct ff_perf_options {
  size_t struct_size;
  const char* (*get)(const char* name); /* as for ff_profiler_start */
  int32_t device;                       /* FF_HOST: host times alone */
  void* stream;                         /* where markers go */
  double peak_tflops;                   /* of one device; 0: not known */
  /* Peak memory of an interval, as the program's allocator counts it. NULL: not
   * recorded. peaks returns 0 when it does not know. */
  void (*reset_peak)(void* argument);
  int32_t (*peaks)(void* argument, int64_t* alloc_bytes,
                   int64_t* reserved_bytes);
  void* argument;
  /* For a program that changes streams: gives the one in use, for each marker;
   * a request then waits for all of the device. NULL: always `stream`. */
  void* (*current_stream)(void* argument);
} ff_perf_options;

/* Gives NULL when VIDEOX_PERF is unset or 0. Log lines go to standard error. */
FF_API ff_status ff_perf_create(const ff_perf_options* options, ff_perf** perf);
/* Writes the summary and the last window. */
FF_API void ff_perf_destroy(ff_perf* perf);
/* Prices stages called `stage` by `model`. */
FF_API ff_status ff_perf_set_transformer(ff_perf* perf, const char* stage,
                                         const ff_model* model);
FF_API ff_status ff_request_begin(ff_perf* perf, ff_request** request);
FF_API ff_status ff_request_end(ff_request* request);
/* Gives NULL outside of a request. */
FF_API ff_status ff_stage_begin(const char* name, ff_stage** stage);
/* `tokens` a sample and `batch` samples; 0: not known. The first call of a
 * stage counts. */
FF_API ff_status ff_stage_end(ff_stage* stage, int64_t tokens, int64_t batch);

typedef enum ff_train_phase {
  FF_TRAIN_VAE_ENCODE = 2,
  FF_TRAIN_VAE_DECODE = 3,
  FF_TRAIN_TEXT_ENCODER = 4,
  FF_TRAIN_AUX = 5,
  FF_TRAIN_FORWARD = 6,
  FF_TRAIN_BACKWARD = 7,
  FF_TRAIN_CLIP = 8
} ff_train_phase;

typedef struct ff_train_scope ff_train_scope;

FF_API ff_status ff_train_set_model(ff_perf* perf, const ff_model* model,
                                    int64_t trainable, int32_t checkpointing,
                                    int64_t sequence_parallel);
FF_API ff_status ff_train_micro_begin(ff_perf* perf, ff_train_scope** scope);
FF_API ff_status ff_train_phase_begin(ff_perf* perf, int32_t phase,
                                      ff_train_scope** scope);
/* `optimizer` tells optimizers apart; `is_boundary`: weights really change. */
FF_API ff_status ff_train_optimizer_begin(ff_perf* perf, const void* optimizer,
                                          int32_t is_boundary,
                                          ff_train_scope** scope);
/* `tokens` and `batch` as for ff_stage_end; of FF_TRAIN_FORWARD alone. */
FF_API ff_status ff_train_end(ff_train_scope* scope, int64_t tokens,
                              int64_t batch);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* LIB_C_API_FIRSTFRAME_H_ */
