"""What requests and training share: the ff_perf of the process."""

import atexit
import ctypes
import os
import sys
from ctypes import byref, c_void_p

from firstframe import _library, models

_perf = None
_keep = None  # callbacks that C calls


def infer_tokens(module, args, kwargs):
    """(tokens a sample, batch) of a transformer's forward, or (0, 0): from an
    integer `seq_len`, a packed [B, tokens, D], or a latent [B, C, F, H, W] and
    config.patch_size."""
    hidden = kwargs.get("hidden_states")
    if hidden is None:
        hidden = kwargs.get("x")
    if hidden is None and args:
        hidden = args[0]
    shape = getattr(hidden, "shape", None)
    if shape is None or len(shape) < 3:
        return 0, 0
    batch, seq_len = int(shape[0]), kwargs.get("seq_len")
    if isinstance(seq_len, int) and seq_len > 0:
        return seq_len, batch
    if len(shape) == 3:
        return int(shape[1]), batch
    if len(shape) == 5:
        patch = getattr(getattr(module, "config", None), "patch_size", None)
        if isinstance(patch, int):
            patch = (1, patch, patch)
        if isinstance(patch, (tuple, list)) and len(patch) == 3:
            frames, height, width = shape[2:]
            return int((frames // patch[0]) * (height // patch[1]) *
                       (width // patch[2])), batch
    return 0, 0


def topology():
    """(rank, world size): of torch's process group where there is one, else as
    the launcher's environment says."""
    torch = sys.modules.get("torch")
    group = getattr(torch, "distributed", None)
    if group is not None and group.is_available() and group.is_initialized():
        return group.get_rank(), group.get_world_size()

    def number(name, default):
        try:
            return int(os.environ.get(name) or default)
        except ValueError:
            return default
    return number("RANK", 0), number("WORLD_SIZE", 1)


def sequence_parallel_size():
    """Ranks that share one sample: xfuser's word, where a program uses it."""
    state = sys.modules.get("xfuser.core.distributed.parallel_state")
    try:
        return max(1, int(state.get_sequence_parallel_world_size()))
    except Exception:  # not imported, or not initialised
        return 1


def _environment():
    """What the library reads variables with: the environment, but for the
    ranks. Returns the callback."""
    rank, world_size = topology()
    known = {b"RANK": b"%d" % rank, b"WORLD_SIZE": b"%d" % world_size}
    kept = {}

    def get(name):
        value = known.get(name)
        if value is None:
            value = os.environb.get(name)
        if value is None:
            return None
        kept[name] = ctypes.create_string_buffer(value)
        return ctypes.addressof(kept[name])
    return _library.GET(get)


def _device_callbacks(torch, device, index):
    """What the library asks PyTorch for: peak memory, and the stream in use."""
    def reset(_):
        torch.cuda.reset_peak_memory_stats(device)

    def peaks(_, alloc, reserved):
        try:
            alloc[0] = torch.cuda.max_memory_allocated(device)
            reserved[0] = torch.cuda.max_memory_reserved(device)
        except Exception:  # an exception cannot pass through C
            return 0
        return 1

    def current_stream(_):
        return torch.cuda.current_stream(index).cuda_stream or None
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        def current_stream(_):  # noqa: F811, the same in a tenth of the time
            return raw(index) or None
    return (_library.RESET_PEAK(reset), _library.PEAKS(peaks),
            _library.CURRENT_STREAM(current_stream))


def process_perf(torch_device=None):
    """The ff_perf of this process, made at the first call; None when
    VIDEOX_PERF is off or the library missing. `torch_device`: the CUDA device
    whose streams get the markers, or None."""
    global _perf, _keep
    if _perf is not None or _library.library() is None:
        return _perf
    options = _library.PerfOptions(
        struct_size=ctypes.sizeof(_library.PerfOptions), device=_library.HOST)
    options.get = _environment()
    if torch_device is not None:
        torch = sys.modules["torch"]
        index = torch_device.index
        options.device = (torch.cuda.current_device() if index is None
                          else index)
        options.peak_tflops = models.device_peak_tflops(
            torch.cuda.get_device_name(torch_device)) or 0
        _keep = _device_callbacks(torch, torch_device, options.device)
        options.reset_peak, options.peaks, options.current_stream = _keep
    _perf = _library.handle("ff_perf_create", byref(options))
    if _perf is not None:
        atexit.register(finish)
    return _perf


def finish():
    """Writes summaries and the last window; called at exit."""
    global _perf
    perf, _perf = _perf, None
    if perf is not None:
        atexit.unregister(finish)
        _library.library().ff_perf_destroy(c_void_p(perf))
