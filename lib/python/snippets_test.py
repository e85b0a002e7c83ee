"""The snippets of docs/from_pytorch.md run as they are written.

On stand-ins for PyTorch and the models; the folder they load from is replaced.
"""

import json
import os
import re
import unittest

import fakes

torch = fakes.install(cuda=True)
fakes.install_accelerate()
FOLDER = os.environ["TEST_TMPDIR"]
os.environ.update(FASTVIDEO_TRACE_ACTIVATIONS="1",
                  FASTVIDEO_TRACE_OUTPUT=os.path.join(FOLDER, "trace.jsonl"),
                  VIDEOX_PERF="1",
                  VIDEOX_PERF_JSON=os.path.join(FOLDER, "perf.jsonl"))

import firstframe  # noqa: E402
from firstframe import _perf  # noqa: E402


class AutoencoderKLWan(fakes.Module):

    @classmethod
    def from_config(cls, config):
        vae = cls()
        vae.conv = fakes.linear(config["dim"], 2)
        return vae

    def decode(self, latent):
        return latent


class WanTransformer3DModel(fakes.Module):

    def __init__(self):
        self.block = fakes.linear(4, 4)
        self.block.forward = lambda x: x

    def forward(self, hidden_states):
        return self.block(hidden_states)

    def load_state_dict(self, state, assign):
        self.loaded = state, assign


class Pipe:

    def __init__(self):
        self.transformer = WanTransformer3DModel()
        self.components = {"transformer": self.transformer}

    def __call__(self):
        return self.transformer(fakes.tensor([1.0, 2, 3, 4], (1, 2, 2)))


def read_snippets():
    with open(os.environ["FROM_PYTORCH"]) as file:
        return re.findall(r"```python\n(.*?)```", file.read(), flags=re.S)


class SnippetsTest(unittest.TestCase):

    def setUp(self):
        self.names = {"AutoencoderKLWan": AutoencoderKLWan,
                      "WanTransformer3DModel": WanTransformer3DModel,
                      "config": {"dim": 3}, "pipe": Pipe(),
                      "model": WanTransformer3DModel(), "latent": 5}
        self.names["vae"] = AutoencoderKLWan.from_config({"dim": 3})

    def run_snippet(self, index, before="", after=""):
        snippet = read_snippets()[index]
        self.assertIn(before, snippet)
        code = snippet.replace(before, after) if before else snippet
        exec(compile(code, "snippet %d" % (index + 1), "exec"), self.names)
        return self.names

    def test_there_are_five(self):
        self.assertEqual(len(read_snippets()), 5)

    def test_1_start(self):
        report = self.run_snippet(0)["report"]
        self.assertEqual([p["name"] for p in report["phases"]],
                         ["vae.construct"])
        self.assertLessEqual({"id", "parent_id", "name", "start_offset_ns",
                              "duration_ns", "status"},
                             set(report["phases"][0]))

    def test_2_layers(self):
        self.run_snippet(1, "\n...\n", "\nwith trace_step(7):\n    pipe()\n")
        with open(os.environ["FASTVIDEO_TRACE_OUTPUT"]) as file:
            [record] = [json.loads(line) for line in file]
        self.assertEqual((record["module"], record["step"], record["sum"]),
                         ("block", 7, 10.0))

    def test_3_weights(self):
        asked = []
        firstframe.load_file = lambda path, device: asked.append(
            (path, device)) or {"x": 1}
        self.run_snippet(2)
        self.assertEqual([device for _, device in asked], ["cuda"])
        self.assertEqual(self.names["model"].loaded, ({"x": 1}, True))

    def test_4_requests(self):
        self.run_snippet(3)
        self.names["pipe"]()
        _perf.finish()
        with open(os.environ["VIDEOX_PERF_JSON"]) as file:
            [record] = [json.loads(line) for line in file]
        self.assertEqual(record["stages"]["transformer"]["count"], 1)

    def test_5_offload(self):
        vae = self.names["vae"]
        self.assertEqual(self.run_snippet(4)["video"], 5)
        self.assertFalse(vae.conv.weight.is_cuda)
        self.assertTrue(vae.conv.weight.is_pinned())


if __name__ == "__main__":
    unittest.main()
