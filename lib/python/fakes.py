"""Just enough of torch, safetensors and accelerate for tests without them.

A fake tensor is a numpy-free view of bytes that ctypes owns; "cuda" tensors lie
in host memory like the others. install() puts the fakes into sys.modules.
"""

import contextlib
import ctypes
import sys
import types

_SIZES = {"float32": 4, "float64": 8, "bfloat16": 2, "uint8": 1, "int64": 8}


class DType:
    def __init__(self, name):
        self.name = name
        self.itemsize = _SIZES[name]

    def __str__(self):
        return "torch." + self.name


class Device:
    def __init__(self, spec, index=None):
        kind, _, number = str(spec).partition(":")
        self.type = kind
        self.index = int(number) if number else index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __str__(self):
        return self.type if self.index is None else "%s:%d" % (self.type,
                                                               self.index)


CPU, CUDA = Device("cpu"), Device("cuda:0")
copied = []  # (bytes, from, to) of every copy between devices


class Storage:
    def __init__(self, size, device, pinned=False):
        self.buffer = ctypes.create_string_buffer(max(1, size))
        self.size = size
        self.device = device
        self.pinned = pinned

    def nbytes(self):
        return self.size

    def data_ptr(self):
        return ctypes.addressof(self.buffer) if self.size else 0


def _row_major(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


class Tensor:
    def __init__(self, storage, dtype, shape=(0,), strides=None, offset=0):
        self._set(storage, dtype, shape, strides, offset)
        self.requires_grad = True

    def _set(self, storage, dtype, shape, strides, offset):
        self._storage, self.dtype = storage, dtype
        self.shape = tuple(shape)
        self._strides = strides or _row_major(self.shape)
        self._offset = offset

    device = property(lambda self: self._storage.device)
    is_cuda = property(lambda self: self.device.type == "cuda")
    ndim = property(lambda self: len(self.shape))

    @property
    def data(self):
        return self

    @data.setter
    def data(self, other):
        self._set(other._storage, other.dtype, other.shape, other._strides,
                  other._offset)

    def set_(self, storage, offset, shape, strides):
        self._set(storage, self.dtype, shape, strides, offset)
        return self

    def untyped_storage(self):
        return self._storage

    def storage_offset(self):
        return self._offset

    def size(self):
        return self.shape

    def stride(self):
        return self._strides

    def dim(self):
        return len(self.shape)

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def detach(self):
        return self

    def is_contiguous(self):
        return self._strides == _row_major(self.shape)

    def data_ptr(self):
        return self._storage.data_ptr() + self._offset * self.dtype.itemsize

    def is_pinned(self):
        return self._storage.pinned

    def copy_(self, other, non_blocking=False):
        size = other.numel() * other.dtype.itemsize
        ctypes.memmove(self.data_ptr(), other.data_ptr(), size)
        if self.device != other.device:
            copied.append((size, other.device.type, self.device.type))
        return self

    def to(self, device):
        device = Device(device) if isinstance(device, str) else device
        if device == self.device:
            return self
        new = Tensor(Storage(self.numel() * self.dtype.itemsize, device),
                     self.dtype, self.shape)
        return new.copy_(self)

    def cpu(self):
        return self.to(CPU)

    def pin_memory(self):
        new = Tensor(Storage(self._storage.size, CPU, True), self.dtype,
                     self.shape)
        return new.copy_(self)

    def values(self):
        kind = {"float32": ctypes.c_float, "uint8": ctypes.c_uint8,
                "float64": ctypes.c_double,
                "int64": ctypes.c_int64}[self.dtype.name]
        return list((kind * self.numel()).from_address(self.data_ptr()))

    def transposed(self):
        return Tensor(self._storage, self.dtype, self.shape[::-1],
                      self._strides[::-1], self._offset)


def linear(rows, columns):
    """A projection, zeroed."""
    module = Module()
    module.weight = tensor([0.0] * (rows * columns), (rows, columns))
    module.out_features = rows
    return module


def tensor(values, shape=None, device=CPU):
    shape = shape or (len(values),)
    result = Tensor(Storage(4 * len(values), device), DType("float32"), shape)
    (ctypes.c_float * len(values)).from_address(
        result._storage.data_ptr())[:] = values
    return result


class Module:
    """Modules and tensors set as attributes are children and parameters."""

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, value in self.__dict__.items():
            if isinstance(value, Module):
                yield from value.named_modules(
                    prefix + "." + name if prefix else name)

    def modules(self):
        return [m for _, m in self.named_modules()]

    def named_parameters(self, recurse=True):
        for prefix, module in self.named_modules():
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    yield prefix + "." + name if prefix else name, value

    def named_buffers(self, recurse=True):
        return iter(())

    def parameters(self):
        return [p for _, p in self.named_parameters()]

    def to(self, device):
        for parameter in self.parameters():
            parameter.data = parameter.data.to(device)
        return self

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


def _from_dlpack(capsule):
    """Imports a "dltensor" capsule as a consumer does: renames and owns it."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object,
                                                  ctypes.c_char_p)
    managed = get(capsule, b"dltensor")
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
    rename(capsule, b"used_dltensor")
    return managed


def install(cuda=False):
    """Makes `import torch` give the fake; returns it."""
    torch = types.ModuleType("torch")
    torch.Tensor, torch.device = Tensor, Device
    for name in _SIZES:
        setattr(torch, name, DType(name))
    torch.uint8 = DType("uint8")
    torch.from_dlpack = _from_dlpack

    def empty(shape, dtype=None, device=CPU):
        shape = (shape,) if isinstance(shape, int) else shape
        count = 1
        for size in shape:
            count *= size
        return Tensor(Storage(count * dtype.itemsize, device), dtype, shape)

    torch.empty = empty
    torch.empty_like = lambda t, device: empty(t.shape, t.dtype, device)
    torch._C = types.SimpleNamespace()
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: cuda, is_initialized=lambda: cuda,
        current_device=lambda: 0,
        current_stream=lambda index: types.SimpleNamespace(cuda_stream=0))
    sys.modules["torch"] = torch
    return torch


class GradientState:
    sync_gradients = True


def install_accelerate():
    """Makes `import accelerate` give a fake; returns its two classes. As in the
    real one optimizers and accelerators share one state of the process."""
    state = GradientState()

    class AcceleratedOptimizer:
        gradient_state = state

        def step(self):
            return "stepped"

    class DeepSpeedOptimizerWrapper(AcceleratedOptimizer):
        def step(self):
            return "stepped in backward"

    class Accelerator:
        gradient_state = state
        device = CPU

        @contextlib.contextmanager
        def accumulate(self, *models):
            yield "value"

        def backward(self, loss):
            return loss

        def clip_grad_norm_(self, parameters, norm):
            return norm

        def prepare(self, *models):
            return models if len(models) > 1 else models[0]

    accelerate = types.ModuleType("accelerate")
    accelerate.Accelerator = Accelerator
    optimizer = types.ModuleType("accelerate.optimizer")
    optimizer.AcceleratedOptimizer = AcceleratedOptimizer
    utils = types.ModuleType("accelerate.utils")
    utils.DeepSpeedOptimizerWrapper = DeepSpeedOptimizerWrapper
    sys.modules.update({"accelerate": accelerate,
                        "accelerate.optimizer": optimizer,
                        "accelerate.utils": utils})
    return Accelerator, AcceleratedOptimizer


class Group:
    """torch.distributed with a process group of `world_size`."""

    def __init__(self, rank, world_size):
        self.rank, self.world_size = rank, world_size

    def is_available(self):
        return True

    def is_initialized(self):
        return True

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.world_size


def install_xfuser(size):
    """Makes xfuser's parallel state say `size`; an exception is raised."""
    def get_sequence_parallel_world_size():
        if isinstance(size, Exception):
            raise size
        return size
    name = "xfuser.core.distributed.parallel_state"
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].get_sequence_parallel_world_size = (
        get_sequence_parallel_world_size)
