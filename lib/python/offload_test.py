import unittest

import fakes

torch = fakes.install(cuda=True)

from firstframe import frozen_offload  # noqa: E402


class Net(fakes.Module):

    def __init__(self):
        self.weight = fakes.tensor([1.0, 2, 3, 4], (2, 2))
        self.bias = fakes.tensor([5.0])
        # The first row of weight, and weight under another name.
        storage = self.weight.untyped_storage()
        self.row = fakes.Tensor(storage, self.weight.dtype, (2,))
        self.tied = fakes.Tensor(storage, self.weight.dtype, (2, 2))


class OffloadTest(unittest.TestCase):

    def setUp(self):
        del fakes.copied[:]

    def test_round_trips_without_copying_back(self):
        net = Net()
        self.assertIs(frozen_offload.load(net, "cuda"), net)
        self.assertTrue(all(p.is_cuda for p in net.parameters()))
        self.assertEqual(net.weight.values(), [1, 2, 3, 4])
        self.assertEqual(net.row.values(), [1, 2])
        # Tied tensors are tied on the device, and copied once.
        self.assertEqual(net.tied.data_ptr(), net.weight.data_ptr())
        self.assertEqual(fakes.copied, [(16, "cpu", "cuda"),
                                        (4, "cpu", "cuda")])
        self.assertIs(frozen_offload.unload(net), net)
        self.assertTrue(all(p.device.type == "cpu" and p.is_pinned()
                            for p in net.parameters()))
        self.assertEqual(net.weight.values(), [1, 2, 3, 4])
        self.assertEqual(net.tied.data_ptr(), net.weight.data_ptr())
        place = net.weight.data_ptr()
        frozen_offload.load(net, "cuda")
        frozen_offload.unload(net)
        self.assertEqual(net.weight.data_ptr(), place)
        self.assertTrue(all(to == "cuda" for _, _, to in fakes.copied))

    def test_a_resident_module_gets_no_host_copies(self):
        net = Net().to("cuda:0")
        del fakes.copied[:]
        frozen_offload.load(net, "cuda")
        self.assertEqual(fakes.copied, [])
        self.assertNotIn(frozen_offload._ATTRIBUTE, net.__dict__)
        frozen_offload.unload(net)  # never loaded: module.to("cpu")
        self.assertFalse(net.bias.is_cuda)

    def test_pageable_copies_without_pin(self):
        net = Net()
        frozen_offload.load(net, "cuda", pin=False)
        frozen_offload.unload(net)
        self.assertFalse(net.weight.is_pinned())
        self.assertEqual(net.weight.values(), [1, 2, 3, 4])

    def test_a_tensor_that_came_later_is_moved(self):
        net = Net()
        frozen_offload.load(net, "cuda")
        frozen_offload.unload(net)
        net.late = fakes.tensor([9.0])
        frozen_offload.load(net, "cuda")
        self.assertTrue(net.late.is_cuda)
        frozen_offload.unload(net)
        self.assertEqual(net.late.values(), [9])

    def test_stays_where_there_is_no_device(self):
        net = Net()
        torch.cuda.is_available = lambda: False
        self.addCleanup(setattr, torch.cuda, "is_available", lambda: True)
        with self.assertLogs("firstframe", "WARNING") as logs:
            for _ in range(2):
                self.assertIs(frozen_offload.load(net, "cuda"), net)
                self.assertIs(frozen_offload.unload(net), net)
        self.assertEqual(len(logs.output), 1)
        self.assertFalse(net.weight.is_cuda)
        self.assertEqual(fakes.copied, [])

    def test_other_devices_are_plain_moves(self):
        net = Net()
        frozen_offload.load(net, "cpu")
        self.assertNotIn(frozen_offload._ATTRIBUTE, net.__dict__)


if __name__ == "__main__":
    unittest.main()
