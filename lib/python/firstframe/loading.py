"""Safetensors, loaded into one arena at the speed of what binds.

    tensors = load_file("model.safetensors", device="cuda")

All tensors of a call share one arena, which lives as long as any of them: keep
one and all of the memory stays. A folder with a component's shards or an
`*.index.json` is loaded whole.
"""

import ctypes
import math
import os
from ctypes import byref

from firstframe import _library


class _Checkpoint:
    """An ff_checkpoint, released when nobody needs it."""

    def __init__(self, path, device):
        self._handle = None
        self._handle = _library.handle("ff_load", os.fsencode(path), device)

    def __len__(self):
        return _library.library().ff_checkpoint_size(self._handle)

    def __del__(self):
        if self._handle is not None:
            _library.library().ff_checkpoint_release(self._handle)

    def info(self, index):
        info = _library.TensorInfo(
            struct_size=ctypes.sizeof(_library.TensorInfo))
        _library.call("ff_checkpoint_tensor", self._handle, index, byref(info))
        return info

    def dlpack(self, index):
        return _library.handle("ff_checkpoint_dlpack", self._handle, index)

    def report(self):
        return _library.text("ff_checkpoint_json", self._handle)


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def _import(managed, from_dlpack):
    """Gives a DLManagedTensor to `from_dlpack`; frees it when that fails."""
    # Without a destructor: a consumer renames the capsule and owns the tensor,
    # and one that failed is dealt with here.
    try:
        return from_dlpack(_new_capsule(managed, b"dltensor", None))
    except BaseException:
        _library.library().ff_dlpack_delete(managed)
        raise


def _ordinal(device):
    """"cpu", "cuda", "cuda:1", an int or a torch.device as an ordinal."""
    if isinstance(device, int):
        return device
    kind, _, index = str(device).partition(":")
    if kind == "cpu":
        return _library.HOST
    if kind != "cuda" or (index and not index.isdigit()):
        raise ValueError("device is %r, expected 'cpu', 'cuda' or 'cuda:N'" %
                         (device,))
    if index:
        return int(index)
    import torch
    return torch.cuda.current_device()


def load_file(path, device="cpu"):
    """Loads every tensor of a safetensors file, index or folder, as safetensors'
    own load_file does for a file: a dict of name to torch tensor, in the
    checkpoint's order. The tensors share one arena by DLPack, nothing is copied
    again, and they are ready on every stream. ValueError for a device that is
    no "cpu" or "cuda[:N]"; FirstframeError for a file that is missing, malformed
    (DATA_LOSS) or too large for the memory. Without our library safetensors'
    load_file is called."""
    import torch
    ordinal = _ordinal(device)
    if _library.library() is None:
        from safetensors.torch import load_file as original
        return original(path, device=str(device))
    if ordinal >= 0:
        torch.cuda.init()  # its context is then the one that is used
    checkpoint = _Checkpoint(path, ordinal)
    tensors = {}
    for i in range(len(checkpoint)):
        info = checkpoint.info(i)
        tensors[info.name.decode()] = _torch_tensor(torch, checkpoint, i, info)
    return tensors


def _torch_tensor(torch, checkpoint, index, info):
    name = _library.TORCH_NAMES[info.dtype]
    dtype = getattr(torch, name, None) if name else None
    if dtype is None:
        raise TypeError("tensor '%s' is %s, which this PyTorch does not have" %
                        (info.name.decode(), _library.NAMES[info.dtype]))
    shape = tuple(info.shape[:info.ndim])
    if math.prod(shape) == 0:
        device = "cpu" if info.device < 0 else "cuda:%d" % info.device
        return torch.empty(shape, dtype=dtype, device=device)
    tensor = _import(checkpoint.dlpack(index), torch.from_dlpack)
    if tensor.dtype != dtype:  # came as bytes
        tensor = tensor.view(dtype)
    return tensor.view(shape)


class _ArrayOwner:
    """What numpy asks for memory; keeps the checkpoint alive."""

    def __init__(self, checkpoint, interface):
        self.checkpoint = checkpoint
        self.__array_interface__ = interface


def load_numpy(path):
    """The same in host memory as numpy arrays, without PyTorch. bfloat16 and
    float8 need ml_dtypes (TypeError without it). RuntimeError where our library
    is missing."""
    import numpy
    if _library.library() is None:
        raise RuntimeError("libfirstframe is missing: " +
                           _library.why_missing())
    checkpoint = _Checkpoint(path, _library.HOST)
    arrays = {}
    for i in range(len(checkpoint)):
        info = checkpoint.info(i)
        shape = tuple(info.shape[:info.ndim])
        dtype = _numpy_dtype(numpy, info)
        if info.size_bytes == 0:
            arrays[info.name.decode()] = numpy.empty(shape, dtype)
            continue
        flat = numpy.asarray(_ArrayOwner(checkpoint, {
            "version": 3, "typestr": "|u1", "shape": (info.size_bytes,),
            "data": (info.data, False)}))
        arrays[info.name.decode()] = flat.view(dtype).reshape(shape)
    return arrays


def _numpy_dtype(numpy, info):
    name = _library.NUMPY_NAMES.get(info.dtype)
    if name is not None:
        return numpy.dtype(name)
    try:
        import ml_dtypes
        return numpy.dtype(getattr(ml_dtypes,
                                   _library.TORCH_NAMES[info.dtype] or ""))
    except (ImportError, AttributeError):
        raise TypeError("tensor '%s' is %s, which numpy does not have" %
                        (info.name.decode(),
                         _library.NAMES[info.dtype])) from None
