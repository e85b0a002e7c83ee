import ast
import os
import re
import subprocess
import sys
import threading
import unittest

import firstframe
from firstframe import _library, profiling, startup


class StartupTest(unittest.TestCase):

    def test_records_nested_phases_and_errors(self):
        with firstframe.collect_startup_timings() as timings:
            with firstframe.startup_phase("vae") as vae:
                vae.set(read_bytes=512, ratio=0.5, path="a\"b")
                with self.assertRaises(ValueError):
                    with firstframe.startup_phase("vae.construct"):
                        raise ValueError("no config")
                self.assertEqual(timings.to_dict()["phases"][0]["error"],
                                 "still open")
        report = timings.to_dict()
        outer, inner = report["phases"]
        self.assertEqual((outer["name"], outer["parent_id"], outer["status"]),
                         ("vae", None, "ok"))
        self.assertEqual(outer["attributes"],
                         {"read_bytes": 512, "ratio": 0.5, "path": "a\"b"})
        self.assertEqual((inner["parent_id"], inner["status"], inner["error"]),
                         (outer["id"], "error", "ValueError: no config"))
        self.assertGreaterEqual(outer["duration_ns"], inner["duration_ns"])
        self.assertGreaterEqual(report["recording_duration_ns"],
                                outer["duration_ns"])

    def test_collectors_nest_and_are_restored(self):
        with firstframe.collect_startup_timings() as outer:
            with firstframe.collect_startup_timings() as inner:
                with firstframe.startup_phase("inside"):
                    pass
            with firstframe.startup_phase("after"):
                pass
        names = [[p["name"] for p in t.to_dict()["phases"]]
                 for t in (outer, inner)]
        self.assertEqual(names, [["after"], ["inside"]])

    def test_other_threads_and_no_collector_record_nothing(self):
        with firstframe.startup_phase("nobody"):
            pass

        @firstframe.startup_phase("thread")
        def work():
            return 5

        with firstframe.collect_startup_timings() as timings:
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.assertEqual(work(), 5)
        self.assertEqual([p["name"] for p in timings.to_dict()["phases"]],
                         ["thread"])

    def test_off_asks_nothing_but_one_attribute(self):
        phase = firstframe.startup_phase("off")
        active, startup._active = startup._active, None  # would raise
        try:
            with phase as same:
                same.set(read_bytes=1)
            self.assertIs(same, phase)
            self.assertEqual(firstframe.startup_phase("off")(len)("abc"), 3)
        finally:
            startup._active = active

    def test_disorder_is_a_warning(self):
        with firstframe.collect_startup_timings() as timings:
            outer = firstframe.startup_phase("outer").__enter__()
            inner = firstframe.startup_phase("inner").__enter__()
            with self.assertLogs("firstframe", "WARNING"):
                outer.__exit__(None, None, None)
            inner.__exit__(None, None, None)
        self.assertEqual(len(timings.to_dict()["phases"]), 2)

    def test_synchronizes_before_each_reading(self):
        calls = []
        with firstframe.collect_startup_timings(
                synchronize=lambda: calls.append(1)):
            with firstframe.startup_phase("a"):
                pass
        self.assertEqual(len(calls), 2)


class RegionTest(unittest.TestCase):

    def test_off_is_one_shared_object(self):
        self.assertFalse(profiling.enabled)
        self.assertIs(firstframe.profiler_region("a"),
                      firstframe.profiler_region("b"))

        @firstframe.profile_region("a")
        def double(x):
            return 2 * x
        self.assertEqual(double(3), 6)

    def test_on_writes_a_trace(self):
        folder = os.environ["TEST_TMPDIR"]
        code = """
import firstframe
with firstframe.profiler_region("profiler_region_training_step"):
    @firstframe.profile_region("training_backward")
    def backward():
        return 1
    assert backward() == 1
"""
        environment = dict(os.environ, FASTVIDEO_TORCH_PROFILER_DIR=folder,
                           FASTVIDEO_TORCH_PROFILE_REGIONS="training_step")
        run = subprocess.run([sys.executable, "-c", code], env=environment,
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("trace written to", run.stderr)
        self.assertTrue(any("trace" in name for name in os.listdir(folder)))


def declared_in_header():
    """Name to number of parameters, as firstframe.h has them."""
    with open(os.environ["FIRSTFRAME_HEADER"]) as file:
        text = re.sub(r"/\*.*?\*/|^#[^\n]*", "", file.read(),
                      flags=re.S | re.M)
    found = {}
    for declaration in re.findall(r"FF_API ([^;]*);", text):
        name, parameters = re.match(r"[^(]*?(ff_\w+)\s*\((.*)\)$", declaration,
                                    flags=re.S).groups()
        # A function's own parameters, not those of a callback among them.
        parameters = re.sub(r"\([^()]*\)", "", parameters)
        found[name] = (0 if parameters.strip() == "void"
                       else parameters.count(",") + 1)
    return found


class LibraryTest(unittest.TestCase):

    def test_declarations_are_the_headers(self):
        header = declared_in_header()
        ours = dict(_library._CALLS)
        ours.update((name, arguments)
                    for name, (_, arguments) in _library._OTHERS.items())
        self.assertGreater(len(header), 50)
        for name, arguments in ours.items():
            self.assertEqual(len(arguments), header.get(name), name)

    def test_sources_are_python_3_9(self):
        folder = os.path.dirname(firstframe.__file__)
        for name in os.listdir(folder):
            if name.endswith(".py"):
                with open(os.path.join(folder, name)) as file:
                    ast.parse(file.read(), name, feature_version=(3, 9))

    def test_declares_what_the_library_has(self):
        self.assertIsNotNone(_library.library(), _library.why_missing())
        self.assertEqual(len(_library.TORCH_NAMES), len(_library.NAMES))

    def test_importing_loads_neither_torch_nor_the_library(self):
        code = ("import sys, firstframe; assert 'torch' not in sys.modules; "
                "assert 'firstframe._library' not in sys.modules")
        subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    unittest.main()
