"""Inference requests: VideoX-Fun's VIDEOX_PERF records for any pipeline.

    instrument_pipeline(pipe)

Each call of the pipeline becomes a request, each call of a component a stage:
transformers with their FLOPs, VAEs as NAME_enc and NAME_dec. With VIDEOX_PERF
unset nothing is wrapped.
"""

import functools
import os
import threading

from firstframe import _library, _perf, models

_local = threading.local()
_VAE_METHODS = (("encode", "_enc"), ("decode", "_dec"),
                ("encode_stream", "_enc"), ("decode_stream", "_dec"))


def _off():
    value = os.environ.get("VIDEOX_PERF", "0").strip()
    return not value.lstrip("+").isdigit() or int(value) <= 0


def _cuda_device(pipe):
    import torch
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    for component in pipe.components.values():
        for parameter in getattr(component, "parameters", tuple)():
            if parameter.is_cuda:
                return parameter.device
    device = getattr(pipe, "_execution_device", None)
    return device if getattr(device, "type", None) == "cuda" else None


def _timed(method, stage, module=None):
    """`method` as a stage; with `module` its tokens are read off the call."""
    encoded = stage.encode()

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        if getattr(_local, "request", None) is None:
            return method(*args, **kwargs)
        tokens, batch = (_perf.infer_tokens(module, args, kwargs)
                         if module is not None else (0, 0))
        scope = _library.scope("ff_stage_begin", encoded)
        try:
            return method(*args, **kwargs)
        finally:
            _library.quietly("ff_stage_end", scope, tokens, batch)
    return wrapper


def _attach(pipe, perf):
    """Wraps components that are not wrapped yet: one may have been replaced
    since the last request."""
    for name, component in dict(pipe.components).items():
        if not hasattr(component, "named_parameters"):
            continue  # tokenizers, schedulers
        # A wrapper (FSDP, torch.compile) answers for the module inside, whose
        # forward is a stage already.
        if getattr(component, "_firstframe_stage", None):
            continue
        component.__dict__["_firstframe_stage"] = name
        if "vae" in name:
            for method, suffix in _VAE_METHODS:
                found = getattr(component, method, None)
                if callable(found):
                    setattr(component, method, _timed(found, name + suffix))
            continue
        is_transformer = name.startswith("transformer")
        component.forward = _timed(component.forward, name,
                                   component if is_transformer else None)
        if is_transformer:
            model = models.Model.of_trained(component, _perf.topology()[1])
            _library.call("ff_perf_set_transformer", perf, name.encode(),
                          model.handle)


def _wrap_call(call):
    @functools.wraps(call)
    def wrapper(self, *args, **kwargs):
        if "_firstframe_pipeline" not in self.__dict__ or getattr(
                _local, "request", None) is not None:
            return call(self, *args, **kwargs)
        request = _begin(self)
        try:
            return call(self, *args, **kwargs)
        finally:
            _end(request)
    wrapper._firstframe = True
    return wrapper


def _begin(pipe):
    try:
        perf = _perf.process_perf(_cuda_device(pipe))
        if perf is None:
            return None
        _attach(pipe, perf)
        _local.request = _library.handle("ff_request_begin", perf)
    except Exception as error:  # measuring must not break the run
        _library.logger.warning("metrics of this request are off: %r", error)
        _local.request = None
    return _local.request


def _end(request):
    _local.request = None
    if request is not None:
        _library.quietly("ff_request_end", request)


def instrument_pipeline(pipe):
    """Measures `pipe`, anything with `components` (a dict) and a __call__, as
    the VIDEOX_PERF* variables say; returns it. Call it once the components are
    on their device. Does nothing when VIDEOX_PERF is off or the library
    missing. A component that is replaced later is found at the next request."""
    if _off() or _library.library() is None:
        return pipe
    for cls in type(pipe).__mro__:
        call = cls.__dict__.get("__call__")
        if call is None:
            continue
        if not getattr(call, "_firstframe", False):
            cls.__call__ = _wrap_call(call)
        break
    pipe.__dict__["_firstframe_pipeline"] = True
    return pipe
