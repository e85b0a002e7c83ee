import json
import os
import unittest

import fakes

torch = fakes.install()
Accelerator, AcceleratedOptimizer = fakes.install_accelerate()

import firstframe  # noqa: E402
from firstframe import _perf, models  # noqa: E402


class Transformer3DModel(fakes.Module):

    def __init__(self):
        self.to_q, self.to_k, self.to_v = [fakes.linear(8, 8) for _ in range(3)]

    def forward(self, hidden_states):
        return hidden_states


class FakeVAE(fakes.Module):

    def encode(self, x):
        return x

    def decode(self, x):
        return x


class Pipe:

    def __init__(self):
        self.components = {"transformer": Transformer3DModel(),
                           "vae": FakeVAE(), "scheduler": object()}

    def __call__(self, steps, fail=False):
        hidden = fakes.tensor([0.0] * 32, (2, 16, 1))
        for _ in range(steps):
            self.components["transformer"](hidden_states=hidden)
        if fail:
            raise ValueError("out of steps")
        return self.components["vae"].decode("frames")


class MetricsTest(unittest.TestCase):

    def setUp(self):
        self.path = os.path.join(os.environ["TEST_TMPDIR"],
                                 self.id() + ".jsonl")
        os.environ.update(VIDEOX_PERF="1", VIDEOX_PERF_JSON=self.path,
                          VIDEOX_PERF_EVERY="2")

    def records(self):
        _perf.finish()
        with open(self.path) as file:
            return [json.loads(line) for line in file]

    def test_off_wraps_nothing(self):
        for value in ("0", "", "nonsense"):
            os.environ["VIDEOX_PERF"] = value
            pipe = Pipe()
            self.assertIs(firstframe.instrument_pipeline(pipe), pipe)
            self.assertFalse(hasattr(Pipe.__call__, "_firstframe"))
            self.assertFalse(firstframe.install_training())

    def test_requests(self):
        pipe = firstframe.instrument_pipeline(Pipe())
        other = Pipe()  # of the same class, not instrumented
        self.assertEqual(pipe(3), "frames")
        other(1)
        with self.assertRaises(ValueError):
            pipe(2, fail=True)
        pipe.components["transformer"] = Transformer3DModel()  # replaced
        pipe(1)
        records = self.records()
        self.assertEqual([r["req"] for r in records], [0, 1, 2])
        first = records[0]
        self.assertEqual(first["stages"]["transformer"]["count"], 3)
        self.assertEqual(first["stages"]["vae_dec"]["count"], 1)
        self.assertEqual((first["dit"]["tokens"], first["dit"]["batch"]),
                         (16, 2))
        self.assertEqual(first["dit"]["flops_per_fwd"],
                         2 * (2 * 192 * 16 + 4 * 16 * 16 * 8))
        self.assertEqual((first["rank"], first["world_size"]), (0, 1))
        self.assertNotIn("vae_dec", records[1]["stages"])
        self.assertEqual(records[2]["stages"]["transformer"]["count"], 1)

    def test_training(self):
        self.assertTrue(firstframe.install_training(
            models=[Transformer3DModel, FakeVAE]))
        self.assertTrue(firstframe.install_training())  # once is enough
        accelerator, optimizer = Accelerator(), AcceleratedOptimizer()
        model, vae = accelerator.prepare(Transformer3DModel()), FakeVAE()
        hidden = fakes.tensor([0.0] * 32, (2, 16, 1))
        for step in range(4):
            for micro in range(2):
                accelerator.gradient_state.sync_gradients = micro == 1
                with accelerator.accumulate(model) as value:
                    self.assertEqual(value, "value")
                    vae.encode(hidden)
                    model(hidden)
                    self.assertEqual(accelerator.backward("loss"), "loss")
                    self.assertEqual(accelerator.clip_grad_norm_([], 1.0), 1.0)
                    self.assertEqual(optimizer.step(), "stepped")
        records = [r for r in self.records() if r["kind"] == "train_window"]
        self.assertEqual([(r["step_first"], r["step_last"]) for r in records],
                         [(0, 1), (2, 3)])
        for record in records:
            self.assertEqual(record["micro_steps"], 2)
            for phase in ("data", "prep", "vae_enc", "fwd", "bwd", "clip",
                          "opt"):
                self.assertIn(phase, record["phases_s"])
            self.assertEqual(record["throughput"]["params"], 192)
            self.assertEqual(record["throughput"]["samples"], 4)

    def test_models(self):
        model = models.Model.of_module(Transformer3DModel())
        self.assertEqual(model.params, 192)
        self.assertEqual(model.compat_flops(10),
                         (2.0 * 192 * 10 + 4 * 100 * 8, 4.0 * 100 * 8))
        self.assertAlmostEqual(
            firstframe.flops_of_model("wan2.1-t2v-14b", 81, 480, 832) / 1e15,
            1.678, places=3)
        with self.assertRaisesRegex(firstframe.FirstframeError, "not found"):
            firstframe.flops_of_model("wan2.1-t2v-41b", 81, 480, 832)
        self.assertEqual(models.device_peak_tflops("NVIDIA H200"), 989)
        self.assertIsNone(models.device_peak_tflops("Abacus"))


if __name__ == "__main__":
    unittest.main()
