"""FLOP models of transformers: published, in files, or as modules."""

from ctypes import byref, c_double, c_int32, c_int64

from firstframe import _library

# What VideoX-Fun takes for attention: modules with all three projections, or a
# fused one; stacks that run over text alone are left out.
_PROJECTIONS = (("q", "to_q", "q_proj"), ("k", "to_k", "k_proj"),
                ("v", "to_v", "v_proj"))
_FUSED = ("qkv", "to_qkv", "qkv_proj")
_TEXT_TOWERS = ("token_refiner", "context_refiner")


def _out_features(module, names):
    for name in names:
        width = getattr(getattr(module, name, None), "out_features", None)
        if isinstance(width, int):
            yield width


def _query_width(module):
    widths = [next(_out_features(module, names), None)
              for names in _PROJECTIONS]
    if None not in widths:
        return widths[0]
    return next((w // 3 for w in _out_features(module, _FUSED) if w % 3 == 0),
                None)


def attention_widths(module):
    """(self, cross, modules): widths of the query projections of a module's
    attentions. Read off `out_features`, which sharding and wrappers (FSDP,
    LoRA) leave as they were; the weights' own shapes are not."""
    widths, modules = [0, 0], 0
    for name, child in module.named_modules():
        name = name.lower()
        if any(tower in name for tower in _TEXT_TOWERS):
            continue
        width = _query_width(child)
        if width is not None:
            widths["cross" in name or name.rpartition(".")[2] == "attn2"] += (
                width)
            modules += 1
    return widths[0], widths[1], modules


def _is_flat(module):
    """Whether parameters hold one rank's shard alone (FSDP, first version)."""
    return (any(hasattr(m, "_fsdp_wrapped_module") or
                type(m).__name__ == "FullyShardedDataParallel"
                for m in module.modules()) or
            any(type(p).__name__ == "FlatParameter"
                for p in module.parameters()))


def count_parameters(module, world_size=1):
    """(all, trainable) parameters of the whole model, sharding undone: FSDP's
    flat parameters are shards of equal size, DeepSpeed's say their size
    (`ds_numel`), DTensors count as whole ones."""
    scale = world_size if world_size > 1 and _is_flat(module) else 1
    total = trainable = 0
    for parameter in module.parameters():
        size = getattr(parameter, "ds_numel", None)
        size = parameter.numel() * scale if size is None else size
        total += size
        trainable += size if parameter.requires_grad else 0
    return total, trainable


def text_tokens(module):
    """The text length that a module advertises, as Wan's does; or 0."""
    value = getattr(module, "text_len", None)
    return value if isinstance(value, int) and value > 0 else 0


class Model:
    """An ff_model. `params`: its number of parameters."""

    def __init__(self, handle):
        self.handle = handle
        params = c_int64()
        _library.call("ff_model_params", handle, byref(params))
        self.params = params.value

    @classmethod
    def open(cls, path):
        """A published name ("wan2.1-t2v-14b"), a file or a folder."""
        return cls(_library.handle("ff_model_open", path.encode()))

    @classmethod
    def of_module(cls, module):
        """From the names and shapes of a torch module's parameters."""
        names, ndims, dims = [], [], []
        for name, parameter in module.named_parameters():
            names.append(name)
            ndims.append(parameter.dim())
            dims.extend(parameter.shape)
        return cls(_library.handle(
            "ff_model_from_layout", _library.strings(names),
            (c_int32 * max(1, len(ndims)))(*ndims),
            (c_int64 * max(1, len(dims)))(*dims), len(names),
            text_tokens(module)))

    @classmethod
    def of_trained(cls, module, world_size=1):
        """From sizes alone, as VideoX-Fun prices a module that may be sharded
        over `world_size` ranks or wrapped."""
        total, _ = count_parameters(module, world_size)
        return cls(_library.handle(
            "ff_model_from_sizes", total, *attention_widths(module),
            text_tokens(module)))

    def __del__(self):
        handle = self.__dict__.get("handle")
        if handle is not None:
            _library.library().ff_model_release(handle)

    def compat_flops(self, tokens):
        """VideoX-Fun's (forward, attention in it) for a sample of `tokens`."""
        forward, attention = c_double(), c_double()
        _library.call("ff_model_compat_flops", self.handle, tokens,
                      byref(forward), byref(attention))
        return forward.value, attention.value

    def forward_flops(self, frames, height, width, batch=1):
        """The exact count of one forward on videos of that size in pixels."""
        flops = c_double()
        _library.call("ff_model_forward_flops", self.handle, batch, frames,
                      height, width, byref(flops))
        return flops.value


def flops_of_model(model, frames, height, width, batch=1):
    """FLOPs of one forward of `model`, a name, a path or a torch module. None
    where the library is missing; FirstframeError where the family is unknown."""
    if _library.library() is None:
        return None
    made = (Model.open(model) if isinstance(model, str)
            else Model.of_module(model))
    return made.forward_flops(frames, height, width, batch)


def device_peak_tflops(device_name):
    """Dense bf16 peak of the device its driver calls so, or None."""
    tflops = c_double()
    try:
        _library.call("ff_device_peak_tflops", device_name.encode(),
                      byref(tflops))
    except _library.FirstframeError:
        return None
    return tflops.value
