"""Firstframe for PyTorch programs: start-up phases, activation traces, weight
loading, request and training metrics, frozen-module offload.

Needs Python 3.9 and libfirstframe.so beside this file; PyTorch only where a
feature works on it. Importing this loads neither. See docs/from_pytorch.md.
"""

import importlib

# Name: the module it lives in.
_EXPORTS = {
    "FirstframeError": "_library",
    "attach_activation_trace": "activation_trace",
    "collect_startup_timings": "startup",
    "detach_activation_trace": "activation_trace",
    "flops_of_model": "models",
    "install_training": "training",
    "instrument_pipeline": "requests",
    "load_file": "loading",
    "load_numpy": "loading",
    "profile_region": "profiling",
    "profiler_region": "profiling",
    "startup_phase": "startup",
    "tensor_stats": "_tensors",
    "trace_step": "activation_trace",
}

__all__ = sorted(_EXPORTS) + ["frozen_offload"]


def __getattr__(name):
    if name == "frozen_offload":
        return importlib.import_module("firstframe.frozen_offload")
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError("firstframe has no '%s'" % name)
    value = getattr(importlib.import_module("firstframe." + module), name)
    globals()[name] = value
    return value
