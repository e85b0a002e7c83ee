"""FastVideo's profiler regions.

    with profiler_region("profiler_region_inference_denoising"):
        ...
    @profile_region("training_step")
    def step(): ...

On with FASTVIDEO_TORCH_PROFILER_DIR set (read at import): the first region
starts this process's profiler, and those that FASTVIDEO_TORCH_PROFILE_REGIONS
selects, with what the GPU does inside them, go to a trace in that folder, written
at exit. Regions are NVTX ranges too. Off, a region costs one attribute test.
"""

import atexit
import functools
import os
from ctypes import byref, c_int32, c_void_p

from firstframe import _library


class _Off:
    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return False


_OFF = _Off()
enabled = bool(os.environ.get("FASTVIDEO_TORCH_PROFILER_DIR"))
_started = False


def _log(lines):
    for line in (lines or "").splitlines():
        _library.logger.warning("profiler: %s", line)


def _start():
    """Starts the profiler once; switches regions off when it cannot be."""
    global enabled, _started
    if _started:
        return
    _started = True
    if _library.library() is None:
        enabled = False
        return
    is_on, messages = c_int32(), c_void_p()
    try:
        _library.call("ff_profiler_start", None, byref(is_on), byref(messages))
        _log(_library.take(messages.value))
        enabled = bool(is_on.value)
    except _library.FirstframeError as error:
        enabled = False
        _log(str(error))
    if enabled:
        atexit.register(stop)


def stop():
    """Ends recording and writes the trace; called at exit."""
    global enabled
    if enabled and _started:
        enabled = False
        _log(_library.text("ff_profiler_stop"))


class _Region:
    __slots__ = ("_name", "_handle")

    def __init__(self, name):
        self._name = name
        self._handle = None

    def __enter__(self):
        _start()
        if enabled:
            self._handle = _library.scope("ff_region_begin",
                                          self._name.encode())
        return self

    def __exit__(self, kind, error, trace):
        handle, self._handle = self._handle, None
        if handle is not None:
            _library.quietly("ff_region_end", handle)
        return False


def profiler_region(name):
    """A context manager that marks region `name`, with or without
    "profiler_region_"."""
    if not enabled:
        return _OFF
    return _Region(name)


def profile_region(name):
    """A decorator: each call of the function is region `name`."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if not enabled:
                return function(*args, **kwargs)
            with _Region(name):
                return function(*args, **kwargs)
        return wrapper
    return decorate
