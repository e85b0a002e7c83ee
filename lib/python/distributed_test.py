"""Training loops whose model is sharded or whose samples are shared by ranks."""

import json
import os
import sys
import unittest

import fakes

torch = fakes.install()
Accelerator, AcceleratedOptimizer = fakes.install_accelerate()

import firstframe  # noqa: E402
from firstframe import _perf, models, training  # noqa: E402
from accelerate.utils import DeepSpeedOptimizerWrapper  # noqa: E402


class Transformer3DModel(fakes.Module):
    """Attention over latents (self), text (cross), and one that runs over text
    alone."""

    def __init__(self):
        self.attn1, self.attn2 = fakes.Module(), fakes.Module()
        self.context_refiner = fakes.Module()
        for attention in (self.attn1, self.attn2, self.context_refiner):
            for name in ("to_q", "to_k", "to_v"):
                setattr(attention, name, fakes.linear(8, 8))
        self.fused = fakes.Module()
        self.fused.qkv = fakes.linear(12, 4)
        self.text_len = 5

    def forward(self, hidden_states):
        return hidden_states


PARAMETERS = 9 * 64 + 48


class FlatParameter(fakes.Tensor):
    pass


class FullyShardedDataParallel(fakes.Module):
    """As FSDP leaves a model: one flat parameter that holds a rank's shard, and
    modules without their weights."""

    def __init__(self, module, world_size):
        self._fsdp_wrapped_module = module
        for child in module.modules():
            child.__dict__.pop("weight", None)
        shard = fakes.tensor([0.0] * (PARAMETERS // world_size))
        self.flat = FlatParameter(shard._storage, shard.dtype, shard.shape)

    def forward(self, hidden_states):
        return self._fsdp_wrapped_module(hidden_states)

    def __getattr__(self, name):  # as torch's wrappers
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_fsdp_wrapped_module"], name)


class DistributedTest(unittest.TestCase):

    def setUp(self):
        self.path = os.path.join(os.environ["TEST_TMPDIR"],
                                 self.id() + ".jsonl")
        os.environ.update(VIDEOX_PERF="1", VIDEOX_PERF_JSON=self.path,
                          VIDEOX_PERF_EVERY="2", RANK="9", WORLD_SIZE="99",
                          VIDEOX_PERF_PEAK_TFLOPS="1e-3")
        torch.distributed = fakes.Group(3, 4)
        self.addCleanup(lambda: delattr(torch, "distributed"))
        self.addCleanup(lambda: sys.modules.pop(
            "xfuser.core.distributed.parallel_state", None))
        training._state = None

    def train(self, model, optimizer, steps=2):
        self.assertTrue(firstframe.install_training(
            models=[Transformer3DModel]))
        accelerator = Accelerator()
        accelerator.gradient_state.sync_gradients = True
        prepared = accelerator.prepare(model)
        hidden = fakes.tensor([0.0] * 32, (2, 16, 1))
        for _ in range(steps):
            with accelerator.accumulate(prepared):
                prepared(hidden)
                accelerator.backward("loss")
                optimizer.step()
        _perf.finish()
        with open(self.path + ".rank3") as file:
            return [json.loads(line) for line in file]

    def check(self, record, dp):
        self.assertEqual((record["rank"], record["world_size"]), (3, 4))
        rate = record["throughput"]
        self.assertEqual((rate["dp"], rate["devices"]), (dp, 4))
        self.assertEqual(rate["params"], PARAMETERS)
        self.assertEqual(rate["trainable"], PARAMETERS)
        forward = (2 * PARAMETERS * 16 + 4 * 16 * 16 * (8 + 4) +
                   4 * 16 * 5 * 8) * 2  # samples
        self.assertEqual(rate["flops_per_step"], 3 * forward)
        self.assertIn("attn from dims (3 modules)", rate["flops_coef_reason"])
        self.assertAlmostEqual(rate["tflops"], 3 * forward * 2 * dp /
                               rate["priced_s"] / 1e12)
        self.assertAlmostEqual(rate["mfu"], rate["tflops"] / 4e-3)

    def test_fsdp_counts_the_whole_model(self):
        model = FullyShardedDataParallel(Transformer3DModel(), 4)
        [record] = self.train(model, AcceleratedOptimizer())
        self.check(record, dp=4)

    def test_ranks_that_share_a_sample(self):
        fakes.install_xfuser(2)
        [record] = self.train(Transformer3DModel(), AcceleratedOptimizer())
        self.check(record, dp=2)

    def test_xfuser_that_is_not_initialised(self):
        fakes.install_xfuser(AssertionError("not initialised"))
        [record] = self.train(Transformer3DModel(), AcceleratedOptimizer())
        self.check(record, dp=4)

    def test_deepspeed_steps_in_backward(self):
        model = Transformer3DModel()
        for parameter in model.parameters():  # as ZeRO's third stage leaves them
            parameter.ds_numel = parameter.numel()
            parameter.shape = (0,)
        records = self.train(model, DeepSpeedOptimizerWrapper())
        self.assertEqual([(r["step_first"], r["step_last"]) for r in records],
                         [(0, 1)])
        self.check(records[0], dp=4)

    def test_a_wrapper_is_one_stage(self):
        class Pipe:
            def __init__(self):
                self.components = {"transformer": Transformer3DModel()}

            def __call__(self):
                hidden = fakes.tensor([0.0] * 32, (2, 16, 1))
                return self.components["transformer"](hidden)

        pipe = firstframe.instrument_pipeline(Pipe())
        pipe()
        pipe.components["transformer"] = FullyShardedDataParallel(
            pipe.components["transformer"], 4)
        pipe()
        _perf.finish()
        with open(self.path + ".rank3") as file:
            records = [json.loads(line) for line in file]
        self.assertEqual([r["stages"]["transformer"]["count"]
                          for r in records], [1, 1])
        self.assertEqual({r["dit"]["params"] for r in records}, {PARAMETERS})

    def test_videox_fun_models_are_found(self):
        class ModelMixin:
            pass

        class TinyTransformer3DModel(ModelMixin):
            def forward(self):
                pass

        package = type(sys)("videox_fun.models")
        package.TinyTransformer3DModel = TinyTransformer3DModel
        package.helper = package.ModelMixin = ModelMixin
        sys.modules["videox_fun.models"] = package
        self.addCleanup(lambda: sys.modules.pop("videox_fun.models"))
        self.assertTrue(firstframe.install_training())
        self.assertTrue(TinyTransformer3DModel.forward._firstframe)
        self.assertFalse(hasattr(ModelMixin, "forward"))

    def test_topology(self):
        self.assertEqual(_perf.topology(), (3, 4))
        torch.distributed.is_initialized = lambda: False
        self.assertEqual(_perf.topology(), (9, 99))
        os.environ.update(RANK="x", WORLD_SIZE="")
        self.assertEqual(_perf.topology(), (0, 1))

    def test_sizes_of_plain_modules(self):
        model = Transformer3DModel()
        self.assertEqual(models.attention_widths(model), (12, 8, 3))
        model.fused.qkv.weight.requires_grad = False
        self.assertEqual(models.count_parameters(model, 4),
                         (PARAMETERS, PARAMETERS - 48))


if __name__ == "__main__":
    unittest.main()
