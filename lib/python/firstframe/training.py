"""Training loops on accelerate: VideoX-Fun's VIDEOX_PERF windows.

    install_training(models=[WanTransformer3DModel, AutoencoderKLWan])

Wraps Accelerator.accumulate, backward, clip_grad_norm_, prepare, the step of
accelerate's optimizers (DeepSpeed's too), and forwards of the given model classes,
so that each global step splits into data, prep, vae_enc, vae_dec, text_encoder,
aux, fwd, bwd, clip, opt and other. Nothing waits for the device. Models may be
sharded by FSDP or DeepSpeed, samples shared by ranks of xfuser. With VIDEOX_PERF
unset nothing is wrapped.
"""

import contextlib
import functools
import sys

from firstframe import _library, _perf, models as _models
from firstframe.requests import _off

_VAE_ENC, _VAE_DEC, _TEXT, _AUX, _FORWARD, _BACKWARD, _CLIP = range(2, 9)
_state = None


class _Training:
    """The loop that is measured. One thread."""

    def __init__(self):
        self.accelerator = None
        self.module = None
        self.params = 0
        self.described = None

    def get(self):
        """The ff_perf, made once the loop has its device."""
        device = getattr(self.accelerator, "device", None)
        is_cuda = getattr(device, "type", None) == "cuda"
        return _perf.process_perf(device if is_cuda else None)

    def note_models(self, prepared):
        """The largest module that prepare() gave back is the one trained. It is
        what owns the parameters once they are sharded."""
        for module in prepared:
            if not hasattr(module, "named_parameters"):
                continue
            params, _ = _models.count_parameters(module, _perf.topology()[1])
            if params > self.params:
                self.params, self.module, self.described = params, module, None

    def describe(self):
        """Sizes the model at the first optimizer step: until then a script may
        freeze weights or switch checkpointing on."""
        if self.described is not None or self.module is None:
            return
        try:
            self._describe(_perf.topology()[1])
        except Exception as error:  # measuring must not break the run
            self.module = None
            _library.logger.warning("training is not priced: %r", error)

    def _describe(self, world_size):
        model = _models.Model.of_trained(self.module, world_size)
        _, trainable = _models.count_parameters(self.module, world_size)
        checkpointing = any(getattr(m, "gradient_checkpointing", False)
                            for m in self.module.modules())
        _library.quietly("ff_train_set_model", self.get(), model.handle,
                         trainable, checkpointing,
                         _perf.sequence_parallel_size())
        self.described = model


@contextlib.contextmanager
def _scope(begin, *arguments, shape=(0, 0)):
    handle = _library.scope(begin, _state.get(), *arguments)
    try:
        yield
    finally:
        _library.quietly("ff_train_end", handle, *shape)


def _phase(function, phase, captures=False):
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        shape = (_perf.infer_tokens(self, args, kwargs) if captures else (0, 0))
        with _scope("ff_train_phase_begin", phase, shape=shape):
            return function(self, *args, **kwargs)
    wrapper._firstframe = True
    return wrapper


def _accelerator_phase(phase):
    def factory(function):
        timed = _phase(function, phase)

        @functools.wraps(function)
        def wrapper(self, *args, **kwargs):
            _state.accelerator = self
            return timed(self, *args, **kwargs)
        return wrapper
    return factory


def _wrap_accumulate(function):
    @functools.wraps(function)
    @contextlib.contextmanager
    def accumulate(self, *modules):
        _state.accelerator = self
        with _scope("ff_train_micro_begin"):
            with function(self, *modules) as value:
                yield value
    return accumulate


def _wrap_prepare(function):
    @functools.wraps(function)
    def prepare(self, *args, **kwargs):
        result = function(self, *args, **kwargs)
        _state.accelerator = self
        _state.note_models(result if isinstance(result, tuple) else (result,))
        return result
    return prepare


def _wrap_step(function):
    @functools.wraps(function)
    def step(self, *args, **kwargs):
        _state.describe()
        # Of an optimizer that is not accelerate's every call is a step.
        gradients = getattr(self, "gradient_state", None)
        boundary = getattr(gradients, "sync_gradients", True)
        with _scope("ff_train_optimizer_begin", id(self), bool(boundary)):
            return function(self, *args, **kwargs)
    return step


def _patch(cls, name, factory):
    function = cls.__dict__.get(name)
    if function is None or getattr(function, "_firstframe", False):
        return 0
    wrapper = factory(function)
    wrapper._firstframe = True
    setattr(cls, name, wrapper)
    return 1


def _model_phase(cls):
    """Which phase a model class's forward is; None for a VAE."""
    name = cls.__name__
    if "Autoencoder" in name or "AutoEncoder" in name or "VAE" in name:
        return None
    if "Vision" in name:
        return _AUX
    if "T5Encoder" in name or "TextEncoder" in name or "CLIPTextModel" in name:
        return _TEXT
    if any(word in name for word in ("Transformer", "UNet", "Unet",
                                     "LatentUpsampler")):
        return _FORWARD
    return _TEXT if "PreTrainedModel" in (
        c.__name__ for c in cls.__mro__) else _AUX


def _patch_model(cls):
    phase = _model_phase(cls)
    methods = ((("forward", phase),) if phase is not None else
               (("encode", _VAE_ENC), ("decode", _VAE_DEC),
                ("encode_stream", _VAE_ENC), ("decode_stream", _VAE_DEC)))
    done = 0
    for name, phase in methods:
        function = getattr(cls, name, None)
        if callable(function) and not getattr(function, "_firstframe", False):
            setattr(cls, name, _phase(function, phase, phase == _FORWARD))
            done = 1
    return done


def _videox_models():
    """The model classes that VideoX-Fun exports, where a program uses it."""
    package = sys.modules.get("videox_fun.models")
    return [cls for cls in getattr(package, "__dict__", {}).values()
            if isinstance(cls, type) and {"ModelMixin", "PreTrainedModel"} &
            {c.__name__ for c in cls.__mro__[1:]}]


def _patch_accelerate():
    from accelerate import Accelerator
    from accelerate.optimizer import AcceleratedOptimizer
    _patch(Accelerator, "accumulate", _wrap_accumulate)
    _patch(Accelerator, "backward", _accelerator_phase(_BACKWARD))
    _patch(Accelerator, "clip_grad_norm_", _accelerator_phase(_CLIP))
    _patch(Accelerator, "prepare", _wrap_prepare)
    _patch(AcceleratedOptimizer, "step", _wrap_step)
    try:
        from accelerate.utils import DeepSpeedOptimizerWrapper
    except ImportError:
        return
    # Its own step does nothing, DeepSpeed's backward has stepped; it is a
    # boundary all the same.
    _patch(DeepSpeedOptimizerWrapper, "step", _wrap_step)


def install_training(models=()):
    """Measures training loops of this process as the VIDEOX_PERF* variables
    say. `models`: classes whose calls are phases, before any is used; without
    them those of videox_fun.models, when it was imported. Returns whether
    anything is measured: False when VIDEOX_PERF is off or the library or
    accelerate is missing. Records are written by _perf.finish(), at exit."""
    global _state
    if _off() or _library.library() is None:
        return False
    if _state is None:
        try:
            _patch_accelerate()
        except ImportError as error:
            _library.logger.warning("training metrics are off: %s", error)
            return False
        _state = _Training()
    for cls in models or _videox_models():
        _patch_model(cls)
    return True
