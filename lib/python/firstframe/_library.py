"""libfirstframe.so through ctypes: declarations, errors, and nothing else.

`library()` is the loaded library, or None with the reason in `why_missing()`:
every feature of the package then steps aside. Looked for at
FIRSTFRAME_LIBRARY, else beside this file.
"""

import ctypes
import logging
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double,
                    c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)

logger = logging.getLogger("firstframe")

ABI_VERSION = 1
HOST = -1

# ff_dtype by the name PyTorch gives the type; None where it has none.
TORCH_NAMES = ("bool", None, None, None, "uint8", "int8", "float8_e5m2",
               "float8_e4m3fn", "float8_e8m0fnu", "float8_e4m3fnuz",
               "float8_e5m2fnuz", "int16", "uint16", "float16", "bfloat16",
               "int32", "uint32", "float32", "complex64", "float64", "int64",
               "uint64")
# By the name of safetensors.
NAMES = ("BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3",
         "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16", "BF16",
         "I32", "U32", "F32", "C64", "F64", "I64", "U64")
NUMPY_NAMES = {0: "bool", 4: "uint8", 5: "int8", 11: "int16", 12: "uint16",
               13: "float16", 15: "int32", 16: "uint32", 17: "float32",
               18: "complex64", 19: "float64", 20: "int64", 21: "uint64"}

_STATUS_NAMES = {1: "cancelled", 2: "internal", 3: "invalid argument",
                 4: "deadline exceeded", 5: "not found", 6: "already exists",
                 7: "permission denied", 8: "resource exhausted",
                 9: "failed precondition", 10: "aborted", 11: "out of range",
                 12: "unimplemented", 14: "unavailable", 15: "data loss"}


class FirstframeError(RuntimeError):
    """A call of the library failed; `code` is its ff_status."""

    def __init__(self, code, message):
        super().__init__("%s: %s" % (_STATUS_NAMES.get(code, code), message))
        self.code = code


class Tensor(Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_void_p),
                ("dtype", c_int32), ("ndim", c_int32),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("device", c_int32), ("stream", c_void_p)]


class Stats(Structure):
    _fields_ = ([("struct_size", c_size_t)] +
                [(n, c_int64)
                 for n in ("numel", "nan", "inf_pos", "inf_neg", "zero")] +
                [(n, c_double) for n in ("sum", "abs_sum", "mean", "m2")] +
                [(n, c_float) for n in ("min", "max", "amax")] +
                [("amax_index", c_int64)] +
                [("torch_" + n, c_float)
                 for n in ("sum", "abs_mean", "mean", "std", "min", "max")] +
                [("h_set", c_uint64), ("h_pos", c_uint64),
                 ("sketch", c_double * 64), ("exponents", c_int64 * 256),
                 ("samples", c_float * 32)])


class TraceSettings(Structure):
    _fields_ = [("struct_size", c_size_t), ("activations", c_char_p),
                ("layers", c_char_p), ("stats", c_char_p),
                ("output", c_char_p), ("steps", c_char_p)]


class TensorInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p),
                ("shape", POINTER(c_int64)), ("data", c_void_p),
                ("dtype", c_int32), ("ndim", c_int32),
                ("size_bytes", c_uint64), ("device", c_int32)]


RESET_PEAK = CFUNCTYPE(None, c_void_p)
PEAKS = CFUNCTYPE(c_int32, c_void_p, POINTER(c_int64), POINTER(c_int64))
CURRENT_STREAM = CFUNCTYPE(c_void_p, c_void_p)
SYNCHRONIZE = CFUNCTYPE(None, c_void_p)
GET = CFUNCTYPE(c_void_p, c_char_p)  # gives a string that the caller keeps


class PerfOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("get", GET),
                ("device", c_int32), ("stream", c_void_p),
                ("peak_tflops", c_double), ("reset_peak", RESET_PEAK),
                ("peaks", PEAKS), ("argument", c_void_p),
                ("current_stream", CURRENT_STREAM)]


_HANDLE = POINTER(c_void_p)
_TEXT = POINTER(c_void_p)  # to be given back: not c_char_p, which copies
_STRINGS = POINTER(c_char_p)

# Name: argument types. All return an ff_status.
_CALLS = {
    "ff_device_count": (POINTER(c_int32),),
    "ff_phase_recorder_create": (SYNCHRONIZE, c_void_p, _HANDLE),
    "ff_phase_recorder_destroy": (c_void_p,),
    "ff_phase_collector_open": (c_void_p, c_char_p, _HANDLE),
    "ff_phase_collector_close": (c_void_p,),
    "ff_phase_begin": (c_char_p, _HANDLE),
    "ff_phase_set_int": (c_void_p, c_char_p, c_int64),
    "ff_phase_set_double": (c_void_p, c_char_p, c_double),
    "ff_phase_set_text": (c_void_p, c_char_p, c_char_p),
    "ff_phase_end": (c_void_p, c_char_p),
    "ff_phase_recorder_json": (c_void_p, _TEXT),
    "ff_profiler_start": (c_void_p, POINTER(c_int32), _TEXT),
    "ff_profiler_stop": (_TEXT,),
    "ff_region_begin": (c_char_p, _HANDLE),
    "ff_region_end": (c_void_p,),
    "ff_stats_compute": (POINTER(Tensor), c_uint32, POINTER(Stats)),
    "ff_tracer_create": (POINTER(TraceSettings), _HANDLE, _TEXT),
    "ff_tracer_attach": (c_void_p, _STRINGS, c_size_t, _TEXT),
    "ff_tracer_record": (c_void_p, c_char_p, c_char_p, POINTER(c_int64),
                         POINTER(Tensor)),
    "ff_tracer_flush": (c_void_p,),
    "ff_load": (c_char_p, c_int32, _HANDLE),
    "ff_load_size": (c_char_p, POINTER(c_uint64)),
    "ff_load_into": (c_char_p, c_int32, c_void_p, c_uint64, _HANDLE),
    "ff_checkpoint_tensor": (c_void_p, c_size_t, POINTER(TensorInfo)),
    "ff_checkpoint_dlpack": (c_void_p, c_size_t, _HANDLE),
    "ff_checkpoint_json": (c_void_p, _TEXT),
    "ff_model_open": (c_char_p, _HANDLE),
    "ff_model_from_layout": (_STRINGS, POINTER(c_int32), POINTER(c_int64),
                             c_size_t, c_int64, _HANDLE),
    "ff_model_from_sizes": (c_int64, c_int64, c_int64, c_int64, c_int64,
                            _HANDLE),
    "ff_model_params": (c_void_p, POINTER(c_int64)),
    "ff_model_compat_flops": (c_void_p, c_int64, POINTER(c_double),
                              POINTER(c_double)),
    "ff_model_forward_flops": (c_void_p, c_int64, c_int64, c_int64, c_int64,
                               POINTER(c_double)),
    "ff_device_peak_tflops": (c_char_p, POINTER(c_double)),
    "ff_perf_create": (POINTER(PerfOptions), _HANDLE),
    "ff_perf_set_transformer": (c_void_p, c_char_p, c_void_p),
    "ff_request_begin": (c_void_p, _HANDLE),
    "ff_request_end": (c_void_p,),
    "ff_stage_begin": (c_char_p, _HANDLE),
    "ff_stage_end": (c_void_p, c_int64, c_int64),
    "ff_train_set_model": (c_void_p, c_void_p, c_int64, c_int32, c_int64),
    "ff_train_micro_begin": (c_void_p, _HANDLE),
    "ff_train_phase_begin": (c_void_p, c_int32, _HANDLE),
    "ff_train_optimizer_begin": (c_void_p, c_void_p, c_int32, _HANDLE),
    "ff_train_end": (c_void_p, c_int64, c_int64),
}
# Name: result and argument types.
_OTHERS = {
    "ff_abi_version": (c_int32, ()),
    "ff_version": (c_char_p, ()),
    "ff_last_error": (c_char_p, ()),
    "ff_free": (None, (c_void_p,)),
    "ff_tracer_wants": (c_int32, (c_void_p, POINTER(c_int64))),
    "ff_tracer_destroy": (None, (c_void_p,)),
    "ff_checkpoint_size": (c_size_t, (c_void_p,)),
    "ff_checkpoint_release": (None, (c_void_p,)),
    "ff_dlpack_delete": (None, (c_void_p,)),
    "ff_model_release": (None, (c_void_p,)),
    "ff_perf_destroy": (None, (c_void_p,)),
}

_UNSET = object()
_library = _UNSET
_why = ""


def _declare(lib):
    for name, arguments in _CALLS.items():
        function = getattr(lib, name)
        function.restype = c_int32
        function.argtypes = arguments
    for name, (result, arguments) in _OTHERS.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


def library():
    """The library, loaded at the first call; None where it cannot be."""
    global _library, _why
    if _library is _UNSET:
        path = os.environ.get("FIRSTFRAME_LIBRARY") or os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "libfirstframe.so")
        try:
            found = _declare(ctypes.CDLL(path))
            if found.ff_abi_version() != ABI_VERSION:
                raise OSError("its ABI is version %d, expected %d" %
                              (found.ff_abi_version(), ABI_VERSION))
            _library = found
        except (OSError, AttributeError) as error:
            _library, _why = None, "%s: %s" % (path, error)
            logger.warning("firstframe is off: %s", _why)
    return _library


def why_missing():
    """Why library() is None; empty when it is not."""
    library()
    return _why


def call(name, *arguments):
    """Calls `name`; FirstframeError unless it is FF_OK."""
    lib = library()
    code = getattr(lib, name)(*arguments)
    if code:
        raise FirstframeError(code, lib.ff_last_error().decode(
            "utf-8", "replace"))


def handle(name, *arguments):
    """Calls `name` for the handle it gives last; None where it gives NULL."""
    result = c_void_p()
    call(name, *arguments, byref(result))
    return result.value


_complaints = set()


def quietly(name, *arguments):
    """Calls `name` inside somebody's run, which measuring must not break: an
    error is a warning, once for each message. Returns whether all was well."""
    lib = library()
    code = getattr(lib, name)(*arguments)
    if code:
        message = lib.ff_last_error().decode("utf-8", "replace")
        if message not in _complaints and len(_complaints) < 100:
            _complaints.add(message)
            logger.warning("%s: %s", name, message)
    return not code


def scope(name, *arguments):
    """Like handle(), quietly: None when there is nothing to end."""
    result = c_void_p()
    quietly(name, *arguments, byref(result))
    return result.value


def text(name, *arguments):
    """Calls `name` for the text it gives last, and frees that."""
    return take(handle(name, *arguments))


def take(pointer):
    """The text at `pointer`, which is freed; None for NULL."""
    if not pointer:
        return None
    value = ctypes.string_at(pointer).decode("utf-8", "replace")
    library().ff_free(pointer)
    return value


def strings(values):
    """A C array of `values`."""
    return (c_char_p * len(values))(
        *[v.encode("utf-8", "surrogatepass") for v in values])
