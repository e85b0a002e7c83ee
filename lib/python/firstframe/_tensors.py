"""PyTorch tensors as ff_tensor."""

import ctypes
from ctypes import POINTER, byref, c_int64

from firstframe import _library

_dtypes = {}
_arrays = {}


def dtype_code(dtype):
    """The ff_dtype of a torch.dtype; None where there is none."""
    code = _dtypes.get(dtype, -1)
    if code == -1:
        name = str(dtype).replace("torch.", "")
        code = (_library.TORCH_NAMES.index(name)
                if name in _library.TORCH_NAMES else None)
        _dtypes[dtype] = code
    return code


def _array(values):
    """Shapes repeat all the time: each is converted once."""
    array = _arrays.get(values)
    if array is None:
        if len(_arrays) > 4096:
            _arrays.clear()
        array = _arrays[values] = (c_int64 * len(values))(*values)
    return array


def describe(tensor, stream=None):
    """The ff_tensor of `tensor`, which must outlive it. `stream` is the
    cudaStream_t that writes it, as an int. None for what has no plain memory:
    meta, sparse, quantised tensors, unknown devices and types."""
    code = dtype_code(tensor.dtype)
    kind = tensor.device.type
    if code is None or kind not in ("cpu", "cuda"):
        return None
    try:
        data = tensor.data_ptr()
        strides = None if tensor.is_contiguous() else _array(tensor.stride())
    except (RuntimeError, NotImplementedError):
        return None
    return _library.Tensor(
        ctypes.sizeof(_library.Tensor), data, code, tensor.dim(),
        _array(tuple(tensor.shape)), strides,
        _library.HOST if kind == "cpu" else tensor.device.index or 0,
        stream if kind == "cuda" else None)


def current_stream(tensor):
    """The stream PyTorch runs on for this tensor's device; None on the host."""
    if tensor.device.type != "cuda":
        return None
    import torch
    return torch.cuda.current_stream(tensor.device).cuda_stream or None


def tensor_stats(tensor, hashes=False, sketch=False):
    """Statistics of a torch tensor in one pass: a dict of `numel`, counts of
    `nan`, `inf_pos`, `inf_neg`, `zero`, moments over the finite elements and
    what PyTorch gives (`torch_sum`, ...). On a device the pass runs on the
    current stream and is waited for. None where the library is missing or the
    tensor has no plain memory. FirstframeError as ff_stats_compute."""
    if _library.library() is None:
        return None
    tensor = tensor.detach()
    described = describe(tensor, current_stream(tensor))
    if described is None:
        return None
    stats = _library.Stats(struct_size=ctypes.sizeof(_library.Stats))
    _library.call("ff_stats_compute", byref(described),
                  (1 if hashes else 0) | (2 if sketch else 0), byref(stats))
    result = {name: getattr(stats, name) for name, _ in stats._fields_
              if name not in ("struct_size", "sketch", "exponents", "samples")}
    if not hashes:
        del result["h_set"], result["h_pos"]
    if sketch:
        result["sketch"] = list(stats.sketch)
    return result
