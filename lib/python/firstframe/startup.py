"""Where the time of a start goes: FastVideo's collect_startup_timings().

    with collect_startup_timings() as timings:
        pipeline = build_pipeline(...)
    report = timings.to_dict()

Code in between marks its phases with `startup_phase`; where nothing collects
that costs one attribute test.
"""

import contextlib
import contextvars
import functools
import json
import threading

from firstframe import _library

_active = contextvars.ContextVar("firstframe_startup_timings", default=None)
_open_count = 0  # collectors of any thread; 0: phases are off
_count_lock = threading.Lock()


class StartupTimings:
    """What was collected. Times are host time, nanoseconds, unless a
    `synchronize` was given."""

    def __init__(self, synchronize=None):
        self._report = None
        self._recorder = None
        self._thread = None
        self._callback = _library.SYNCHRONIZE(
            (lambda _: synchronize()) if synchronize else 0)

    def _open(self):
        self._recorder = _library.handle("ff_phase_recorder_create",
                                         self._callback, None)
        self._thread = threading.get_ident()
        self._collector = _library.handle("ff_phase_collector_open",
                                          self._recorder, b"main")

    def _close(self):
        closed = _library.quietly("ff_phase_collector_close", self._collector)
        self._report = self._read()
        if closed:  # else a phase is still open and needs the recorder
            _library.quietly("ff_phase_recorder_destroy", self._recorder)
        self._recorder = None

    def _read(self):
        return json.loads(_library.text("ff_phase_recorder_json",
                                        self._recorder))

    def to_dict(self):
        """`recording_duration_ns` and `phases`: dicts of `id`, `parent_id`,
        `name`, `start_offset_ns`, `duration_ns`, `status` ("ok" or "error", then
        `error`). A parent's duration includes its children's. May be called
        while collecting: phases still open are then errors, "still open". Empty
        where the library is missing."""
        if self._recorder is not None:
            return self._read()
        if self._report is not None:
            return self._report
        return {"recording_duration_ns": 0, "lanes": [], "phases": []}


@contextlib.contextmanager
def collect_startup_timings(synchronize=None):
    """Collects the phases of this context until it is left, then restores what
    was there before; nests. `synchronize()` is called before each reading of the
    clock, to wait for a device (it changes what overlaps with what)."""
    timings = StartupTimings(synchronize)
    if _library.library() is None:
        yield timings
        return
    timings._open()
    token = _active.set(timings)
    _count(1)
    try:
        yield timings
    finally:
        _count(-1)
        _active.reset(token)
        timings._close()


def _count(change):
    global _open_count
    with _count_lock:
        _open_count += change


class startup_phase:
    """Marks a phase: `with startup_phase("vae.construct"):`, or a decorator.
    `set(read_bytes=512)` on what `with` gives adds facts, units in their names.
    An exception makes it an error and goes on. Where nothing collects it costs
    one attribute test."""

    __slots__ = ("_name", "_phase")

    def __init__(self, name):
        self._name = name
        self._phase = None

    def __call__(self, function):
        name = self._name

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if not _open_count:
                return function(*args, **kwargs)
            with startup_phase(name):
                return function(*args, **kwargs)
        return wrapper

    def __enter__(self):
        if not _open_count:
            return self
        timings = _active.get()
        # Another thread has a collector of its own, or none.
        if timings is not None and timings._thread == threading.get_ident():
            self._phase = _library.scope("ff_phase_begin", self._name.encode())
        return self

    def set(self, **facts):
        if self._phase is None:
            return
        for name, value in facts.items():
            kind, value = (("int", int(value)) if isinstance(value, int) else
                           ("double", value) if isinstance(value, float) else
                           ("text", str(value).encode()))
            _library.quietly("ff_phase_set_" + kind, self._phase, name.encode(),
                             value)

    def __exit__(self, kind, error, trace):
        if self._phase is not None:
            phase, self._phase = self._phase, None
            message = None
            if kind is not None:
                message = ("%s: %s" % (kind.__name__, error)).encode()
            _library.quietly("ff_phase_end", phase, message)
        return False
