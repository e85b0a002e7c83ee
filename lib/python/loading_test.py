import gc
import json
import os
import struct
import unittest

import fakes

torch = fakes.install()

import firstframe  # noqa: E402
from firstframe import _library, loading  # noqa: E402


def write(name, tensors):
    """`tensors`: name to (dtype, shape, bytes)."""
    header, data = {}, b""
    for key, (dtype, shape, value) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape,
                       "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path = os.path.join(os.environ["TEST_TMPDIR"], name)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    return path


class LoadingTest(unittest.TestCase):

    def setUp(self):
        self.path = write("a.safetensors", {
            "x": ("F32", [2], struct.pack("<2f", 1.5, -2)),
            "n": ("I64", [], struct.pack("<q", 7)),
        })

    def test_info_and_report(self):
        checkpoint = loading._Checkpoint(self.path, _library.HOST)
        self.assertEqual(len(checkpoint), 2)
        self.assertEqual(checkpoint.info(0).name, b"x")
        self.assertEqual(json.loads(checkpoint.report())["tensors"], 2)

    def test_a_dlpack_tensor_keeps_the_arena(self):
        checkpoint = loading._Checkpoint(self.path, _library.HOST)
        managed = loading._import(checkpoint.dlpack(0), torch.from_dlpack)
        address = checkpoint.info(0).data
        del checkpoint
        gc.collect()
        import ctypes
        self.assertEqual(
            list((ctypes.c_float * 2).from_address(address)), [1.5, -2])
        _library.library().ff_dlpack_delete(managed)

    def test_a_consumer_that_fails_frees_the_tensor(self):
        checkpoint = loading._Checkpoint(self.path, _library.HOST)

        def fail(capsule):
            raise TypeError("no")
        with self.assertRaises(TypeError):
            loading._import(checkpoint.dlpack(0), fail)

    def test_numpy_arrays_share_the_arena(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        arrays = firstframe.load_numpy(self.path)
        gc.collect()
        numpy.testing.assert_array_equal(arrays["x"],
                                         numpy.array([1.5, -2], "float32"))
        self.assertEqual(arrays["n"].shape, ())
        self.assertEqual(int(arrays["n"]), 7)
        path = write("b.safetensors", {"f": ("F8_E4M3", [1], b"a")})
        try:
            import ml_dtypes  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(TypeError, "F8_E4M3"):
                firstframe.load_numpy(path)

    def test_says_what_is_wrong(self):
        with self.assertRaisesRegex(firstframe.FirstframeError,
                                    "/nowhere/x.safetensors"):
            firstframe.load_file("/nowhere/x.safetensors")
        broken = os.path.join(os.environ["TEST_TMPDIR"], "broken.safetensors")
        with open(broken, "wb") as file:
            file.write(b"12345678{")
        with self.assertRaisesRegex(firstframe.FirstframeError, "data loss"):
            firstframe.load_file(broken)
        for device in ("mps", "cuda:x", None):
            with self.assertRaisesRegex(ValueError, "expected 'cpu'"):
                firstframe.load_file(self.path, device)

    def test_a_missing_device_is_an_error(self):
        with self.assertRaises(firstframe.FirstframeError):
            loading._Checkpoint(self.path, 1000)


if __name__ == "__main__":
    unittest.main()
