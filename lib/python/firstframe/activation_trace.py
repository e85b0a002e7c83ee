"""FastVideo's activation traces, with one kernel a tensor and no waiting.

    trace = attach_activation_trace(model)      # None when it is off
    ...
    detach_activation_trace(trace)

Off (FASTVIDEO_TRACE_ACTIVATIONS unset or "0") nothing is attached. On, the
outputs of modules whose name matches FASTVIDEO_TRACE_LAYERS get a record each of
FASTVIDEO_TRACE_STATS in the file FASTVIDEO_TRACE_OUTPUT, for the steps in
FASTVIDEO_TRACE_STEPS: the variables, labels, keys and numbers of FastVideo's own
hook. A record is written once its kernel is done, at the latest when the trace is
detached, flushed, or the process ends.
"""

import atexit
import contextlib
import ctypes
import functools
import os
import re
import threading
import weakref
from ctypes import byref, c_int64, c_void_p

from firstframe import _library, _tensors

_state = threading.local()
_VARIABLES = ("activations", "layers", "stats", "output", "steps")


def current_step_idx():
    """This thread's denoising step, or None."""
    return getattr(_state, "step", None)


@contextlib.contextmanager
def trace_step(step_idx):
    """Sets this thread's denoising step for the records made inside."""
    previous = getattr(_state, "step", None)
    _state.step = step_idx
    try:
        yield
    finally:
        _state.step = previous


def _flatten(value, label, tensor_type, found):
    if isinstance(value, tensor_type):
        found.append((label, value))
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            _flatten(item, "%s[%d]" % (label, i), tensor_type, found)
    elif isinstance(value, dict):
        for key, item in value.items():
            _flatten(item, "%s.%s" % (label, key), tensor_type, found)
    return found


class ActivationTrace:
    """Modules whose outputs are recorded. Thread-safe once attached."""

    def __init__(self, tracer, tensor_type, stream_of):
        self._tracer = tracer
        self._tensor_type = tensor_type
        self._stream_of = stream_of
        self._modules = []
        self._complained = False
        self._record = _library.library().ff_tracer_record
        # At exit the trace may be gone already: only a weak reference is kept.
        reference = weakref.ref(self)
        self._at_exit = lambda: reference() and reference().detach()
        atexit.register(self._at_exit)

    def _attach(self, module, name):
        original = module.forward
        had_own = "forward" in module.__dict__
        encoded = name.encode("utf-8", "surrogatepass")

        @functools.wraps(original)
        def forward(*args, **kwargs):
            output = original(*args, **kwargs)
            self._see(encoded, output)
            return output

        module.forward = forward
        self._modules.append((module, original if had_own else None))

    def _see(self, module, output):
        tracer = self._tracer
        if tracer is None:
            return
        step = current_step_idx()
        step = None if step is None else byref(c_int64(step))
        try:
            if isinstance(output, self._tensor_type):
                self._record_one(tracer, module, b"out", step, output)
                return
            for label, tensor in _flatten(output, "out", self._tensor_type, []):
                self._record_one(tracer, module,
                                 label.encode("utf-8", "surrogatepass"), step,
                                 tensor)
        except Exception as error:  # measuring must not break the run
            self._complain(error)

    def _record_one(self, tracer, module, label, step, tensor):
        stream = self._stream_of(tensor)
        described = _tensors.describe(tensor, stream)
        if described is None:
            self._complain("%s of %s has no statistics" %
                           (tensor.dtype, tensor.device))
            return
        code = self._record(tracer, module, label, step, byref(described))
        if code:
            self._complain(_library.library().ff_last_error().decode())

    def _complain(self, what):
        if not self._complained:
            self._complained = True
            _library.logger.warning("activation trace: %s", what)

    def flush(self):
        """Waits for what is on its way and writes it."""
        if self._tracer is not None:
            _library.call("ff_tracer_flush", self._tracer)

    def detach(self):
        """Puts the modules back as they were and finishes the file."""
        for module, original in self._modules:
            if original is None:
                module.__dict__.pop("forward", None)
            else:
                module.forward = original
        self._modules = []
        tracer, self._tracer = self._tracer, None
        if tracer is not None:
            _library.library().ff_tracer_destroy(tracer)
            atexit.unregister(self._at_exit)

    remove_from_manager = detach  # FastVideo's name


def _read_environment():
    values = {name: os.environ.get("FASTVIDEO_TRACE_" + name.upper())
              for name in _VARIABLES}
    layers = values.pop("layers") or ""
    encoded = {k: None if v is None else os.fsencode(v)
               for k, v in values.items()}
    # Names are matched here, by Python's re as in FastVideo.
    settings = _library.TraceSettings(
        struct_size=ctypes.sizeof(_library.TraceSettings), **encoded)
    return settings, layers


def _torch_parts():
    import torch
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def stream_of(tensor):
        if not tensor.is_cuda:
            return None
        index = tensor.device.index
        if raw is not None:
            return raw(index) or None
        return torch.cuda.current_stream(index).cuda_stream or None
    return torch.Tensor, stream_of


def attach_activation_trace(model):
    """Records the outputs of `model`'s modules (named_modules() without the
    root) that match. Returns what detach_activation_trace() takes, or None when
    tracing is off, `model` is None, or the library is missing. Raises re.error
    for a bad pattern, FirstframeError for steps that are not integers or a file
    that cannot be opened."""
    if (model is None or
            os.environ.get("FASTVIDEO_TRACE_ACTIVATIONS", "0") == "0" or
            _library.library() is None):
        return None
    settings, layers = _read_environment()
    pattern = re.compile(layers)
    tracer, warnings = c_void_p(), c_void_p()
    _library.call("ff_tracer_create", byref(settings), byref(tracer),
                  byref(warnings))
    for line in (_library.take(warnings.value) or "").splitlines():
        _library.logger.warning("%s", line)
    if not tracer.value:
        return None
    trace = ActivationTrace(tracer.value, *_torch_parts())
    names = []
    for name, module in model.named_modules():
        if name and pattern.search(name):
            trace._attach(module, name)
            names.append(name)
    message = _library.text("ff_tracer_attach", tracer.value,
                            _library.strings(names), len(names))
    if names:
        _library.logger.info("%s", message)
    else:
        _library.logger.warning("activation trace: no module name matches %r",
                                layers)
    return trace


def detach_activation_trace(trace):
    """Undoes attach_activation_trace(); None is fine."""
    if trace is not None:
        trace.detach()
