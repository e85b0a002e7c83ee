"""Keeps a frozen module on the host between uses, without copying it back.

    frozen_offload.load(vae, "cuda")     # host to device, once per use
    ...
    frozen_offload.unload(vae)           # frees the device; copies nothing

module.to("cpu") copies every weight back into fresh memory. Those of a module
that only runs inference are on the device the very bytes that came from the host,
so unload() points each tensor at that host copy again. This is PyTorch throughout:
device memory is its caching allocator's, so nothing competes with it, and the
library is not needed.

Only for modules whose weights do not change on the device: what is written there
is lost. Tensors that share storage (tied weights, views) share the host copy and
the device copy. Not thread-safe: nothing may use the module meanwhile.
"""

import functools

from firstframe import _library

_ATTRIBUTE = "_firstframe_host"


def _tensors(module):
    for name, tensor in module.named_parameters(recurse=True):
        yield name, tensor
    for name, tensor in module.named_buffers(recurse=True):
        yield "buffer:" + name, tensor


def _view(torch, storage, like):
    """A tensor in `storage` that lies as `like` lies in its own."""
    return torch.empty(0, dtype=like.dtype, device=storage.device).set_(
        storage, like.storage_offset(), like.size(), like.stride())


def _as_bytes(torch, storage):
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(
        storage, 0, (storage.nbytes(),), (1,))


class _Host:
    """Host copies by tensor name. `groups` number the storages: tensors of one
    group share one."""

    def __init__(self, torch, module, pin):
        self.tensors, self.groups = {}, {}
        copies, self.bytes = {}, 0
        for name, tensor in _tensors(module):
            storage = tensor.data.untyped_storage()
            # By address and not by object; empty storages have none.
            key = (storage.device, storage.data_ptr() or name)
            if key not in copies:
                copy = _as_bytes(torch, storage)
                copy = copy.cpu()
                if pin and not copy.is_pinned():
                    copy = copy.pin_memory()
                copies[key] = (len(copies), copy.untyped_storage())
                self.bytes += storage.nbytes()
            self.groups[name], host = copies[key]
            self.tensors[name] = _view(torch, host, tensor.data)


def _host_copies(torch, module, pin):
    host = module.__dict__.get(_ATTRIBUTE)
    if host is None:
        host = _Host(torch, module, pin)
        module.__dict__[_ATTRIBUTE] = host
        _library.logger.info("frozen offload: %s has %.2f GB on the host",
                             type(module).__name__, host.bytes / 1e9)
    return host


@functools.lru_cache(maxsize=None)
def _warn_no_device():
    _library.logger.warning("frozen offload: no CUDA device; modules stay where "
                            "they are")


def load(module, device, pin=True):
    """Puts a frozen `module` on `device` and returns it.

    The first time it makes a host copy of each storage, page-locked with `pin`
    (PyTorch rounds each up to a power of two bytes), which stays for the life
    of the module. Returns at once, without host copies, when nothing is absent.
    Copies run on the current stream; with `pin` the caller does not wait for
    them. A device that is not CUDA is module.to(device); where there is no CUDA
    device the module stays where it is, with one warning."""
    import torch
    device = torch.device(device)
    if device.type != "cuda":
        return module.to(device)
    if not torch.cuda.is_available():
        _warn_no_device()
        return module
    if device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    missing = [(n, t) for n, t in _tensors(module) if t.data.device != device]
    if not missing:
        return module
    host = _host_copies(torch, module, pin)
    loaded = {}
    for name, tensor in missing:
        source = host.tensors.get(name)
        if source is None:  # came after the host copies were made
            tensor.data = tensor.data.to(device)
            continue
        group = host.groups[name]
        if group not in loaded:
            from_bytes = _as_bytes(torch, source.untyped_storage())
            to = torch.empty_like(from_bytes, device=device)
            to.copy_(from_bytes, non_blocking=from_bytes.is_pinned())
            loaded[group] = to.untyped_storage()
        tensor.data = _view(torch, loaded[group], source)
    return module


def unload(module):
    """Points a frozen `module` at its host copies and lets the device memory
    go; nothing is copied. One that load() never copied goes by
    module.to("cpu"). Returns the module."""
    host = module.__dict__.get(_ATTRIBUTE)
    if host is None:
        return module.to("cpu")
    for name, tensor in _tensors(module):
        if tensor.data.device.type == "cpu":
            continue
        source = host.tensors.get(name)
        tensor.data = tensor.data.to("cpu") if source is None else source
    return module
