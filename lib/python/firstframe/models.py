"""FLOP models of transformers: published, in files, or as modules."""

from ctypes import byref, c_double, c_int32, c_int64

from firstframe import _library


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
        text_tokens = getattr(module, "text_len", None)
        if not isinstance(text_tokens, int) or text_tokens < 0:
            text_tokens = 0
        return cls(_library.handle(
            "ff_model_from_layout", _library.strings(names),
            (c_int32 * max(1, len(ndims)))(*ndims),
            (c_int64 * max(1, len(dims)))(*dims), len(names), text_tokens))

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
