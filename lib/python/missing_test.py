"""Where the library is missing, broken or of another version, everything steps
aside: what would measure does nothing, what would load does what PyTorch does."""

import os
import subprocess
import sys
import unittest

STEPS_ASIDE = """
import sys, types
import fakes
torch = fakes.install()
safetensors = types.ModuleType("safetensors.torch")
safetensors.load_file = lambda path, device: (path, device)
sys.modules["safetensors.torch"] = safetensors
sys.modules["safetensors"] = types.ModuleType("safetensors")
Accelerator, AcceleratedOptimizer = fakes.install_accelerate()
methods = dict(vars(Accelerator)), dict(vars(AcceleratedOptimizer))

import firstframe
with firstframe.collect_startup_timings() as timings:
    with firstframe.startup_phase("a") as phase:
        phase.set(read_bytes=1)
assert timings.to_dict()["phases"] == [], timings.to_dict()
with firstframe.profiler_region("training_step"):
    pass
assert firstframe.profile_region("x")(len)("ab") == 2

class Model(fakes.Module):
    def __init__(self):
        self.child = fakes.linear(2, 2)

model = Model()
assert firstframe.attach_activation_trace(model) is None
assert "forward" not in vars(model.child)
firstframe.detach_activation_trace(None)
with firstframe.trace_step(3):
    pass
assert firstframe.tensor_stats(fakes.tensor([1.0])) is None

class Pipe:
    components = {"transformer": model}
    def __call__(self):
        return 5

call = Pipe.__call__
pipe = Pipe()
assert firstframe.instrument_pipeline(pipe) is pipe
assert Pipe.__call__ is call and pipe() == 5
assert firstframe.install_training() is False
assert methods == (dict(vars(Accelerator)), dict(vars(AcceleratedOptimizer)))
assert firstframe.flops_of_model("wan2.1-t2v-14b", 81, 480, 832) is None
assert firstframe.load_file("x", "cpu") == ("x", "cpu")
try:
    firstframe.load_numpy("x")
except (RuntimeError, ImportError) as error:
    assert "numpy" in str(error) or "missing" in str(error), error
else:
    raise AssertionError("load_numpy gave something")
assert firstframe.frozen_offload.load(model, "cuda") is model
assert firstframe.frozen_offload.unload(model) is model
"""


class MissingTest(unittest.TestCase):

    def check(self, library, reason):
        environment = dict(os.environ, FIRSTFRAME_LIBRARY=library,
                           FASTVIDEO_TRACE_ACTIVATIONS="1", VIDEOX_PERF="1",
                           FASTVIDEO_TORCH_PROFILER_DIR="/tmp")
        here = os.path.dirname(os.path.abspath(__file__))
        environment["PYTHONPATH"] = here + ":" + environment["PYTHONPATH"]
        run = subprocess.run([sys.executable, "-c", STEPS_ASIDE],
                             env=environment, capture_output=True, text=True,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        said = [line for line in run.stderr.splitlines() if library in line]
        self.assertEqual(len(said), 1, run.stderr)  # once, not at each call
        self.assertIn("firstframe is off", said[0])
        self.assertIn(reason, said[0])

    def test_no_file(self):
        self.check("/nowhere/x.so", "No such file")

    def test_no_library(self):
        path = os.path.join(os.environ["TEST_TMPDIR"], "text.so")
        with open(path, "w") as file:
            file.write("not a library")
        self.check(path, "file too short")

    def test_another_library(self):
        self.check("libc.so.6", "ff_")


if __name__ == "__main__":
    unittest.main()
