import json
import os
import threading
import unittest

import fakes

torch = fakes.install()

import firstframe  # noqa: E402


class Leaf(fakes.Module):

    def __init__(self, output):
        self.output = output

    def forward(self):
        return self.output


class Model(fakes.Module):

    def __init__(self, **leaves):
        for name, output in leaves.items():
            setattr(self, name, Leaf(output))

    def forward(self):
        return [m() for m in self.__dict__.values()
                if isinstance(m, Leaf)][0]


class ActivationTraceTest(unittest.TestCase):

    def setUp(self):
        self.path = os.path.join(os.environ["TEST_TMPDIR"],
                                 self.id() + ".jsonl")
        for name in list(os.environ):
            if name.startswith("FASTVIDEO_TRACE"):
                del os.environ[name]
        os.environ.update(FASTVIDEO_TRACE_ACTIVATIONS="1",
                          FASTVIDEO_TRACE_OUTPUT=self.path)

    def read(self):
        with open(self.path) as file:
            return file.read()

    def test_off_attaches_nothing(self):
        for value in ("0", None):
            if value is None:
                del os.environ["FASTVIDEO_TRACE_ACTIVATIONS"]
            else:
                os.environ["FASTVIDEO_TRACE_ACTIVATIONS"] = value
            model = Model(a=fakes.tensor([1.0]))
            self.assertIsNone(firstframe.attach_activation_trace(model))
            self.assertNotIn("forward", model.a.__dict__)
        self.assertIsNone(firstframe.attach_activation_trace(None))
        firstframe.detach_activation_trace(None)

    def test_writes_the_original_lines(self):
        model = Model(a=fakes.tensor([1.0, -2.0, 4.0]))
        trace = firstframe.attach_activation_trace(model)
        model()
        with firstframe.trace_step(7):
            model()
        firstframe.detach_activation_trace(trace)
        model()  # no longer recorded
        self.assertNotIn("forward", model.a.__dict__)
        tail = '"abs_mean": 2.3333332538604736, "sum": 3.0}\n'
        self.assertEqual(
            self.read(),
            '{"module": "a", "tensor": "out", "step": null, ' + tail +
            '{"module": "a", "tensor": "out", "step": 7, ' + tail)

    def test_labels_nested_outputs(self):
        one = fakes.tensor([1.0])
        output = {"x": [one, None, (one, 3)], "\u043a": one}
        trace = firstframe.attach_activation_trace(Model(a=output))
        trace._modules[0][0]()
        trace.flush()
        labels = [json.loads(line)["tensor"] for line in self.read().split("\n")
                  if line]
        self.assertEqual(labels, ["out.x[0]", "out.x[2][0]", "out.\u043a"])

    def test_reads_strides(self):
        os.environ["FASTVIDEO_TRACE_STATS"] = "sum,shape,dtype"
        tensor = fakes.tensor([1.0, 2, 3, 4, 5, 6], (2, 3)).transposed()
        trace = firstframe.attach_activation_trace(Model(a=tensor))
        trace._modules[0][0]()
        firstframe.detach_activation_trace(trace)
        self.assertIn('"sum": 21.0, "shape": [3, 2], "dtype": "torch.float32"',
                      self.read())

    def test_selects_layers_and_steps(self):
        os.environ.update(FASTVIDEO_TRACE_LAYERS="^b(?!x)",  # not in RE2
                          FASTVIDEO_TRACE_STEPS="2")
        model = Model(a=fakes.tensor([1.0]), b=fakes.tensor([2.0]),
                      bx=fakes.tensor([2.0]))
        trace = firstframe.attach_activation_trace(model)
        for step in (1, 2):
            with firstframe.trace_step(step):
                model.a(), model.b(), model.bx()
        model.b()
        firstframe.detach_activation_trace(trace)
        records = [json.loads(line) for line in self.read().splitlines()]
        self.assertEqual([(r["module"], r["step"]) for r in records],
                         [("b", 2)])

    def test_steps_belong_to_threads(self):
        from firstframe.activation_trace import current_step_idx
        seen = []
        with firstframe.trace_step(3):
            thread = threading.Thread(
                target=lambda: seen.append(current_step_idx()))
            thread.start()
            thread.join()
            self.assertEqual(current_step_idx(), 3)
        self.assertEqual(seen, [None])
        self.assertIsNone(current_step_idx())

    def test_refuses_steps_that_are_no_integers(self):
        os.environ["FASTVIDEO_TRACE_STEPS"] = "1,x"
        with self.assertRaises(firstframe.FirstframeError):
            firstframe.attach_activation_trace(Model(a=fakes.tensor([1.0])))

    def test_a_tensor_without_memory_does_not_break_the_run(self):
        strange = fakes.tensor([1.0], device=fakes.Device("meta"))
        model = Model(a=strange, b=fakes.tensor([1.0]))
        trace = firstframe.attach_activation_trace(model)
        with self.assertLogs("firstframe", "WARNING"):
            self.assertIs(model.a(), strange)
        model.b()
        firstframe.detach_activation_trace(trace)
        self.assertEqual(len(self.read().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
