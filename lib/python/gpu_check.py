"""Runs the package on a CUDA device against what users have; prints one JSON
line a check, correctness first, then figures, beside their targets.

usage: gpu_check.py FOLDER [hook] [load] [offload]

FOLDER gets the trace files. `hook` needs diffusers (DIFFUSERS_SRC names its src
folder), FastVideo's fastvideo/hooks (FASTVIDEO_SRC names a folder with it, with
stand-ins for its envs and logger) and TRACE_DIFF, which names that tool; on a
machine without a device it runs on a small model, to try the script. Exit status
1: something differs.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

failures = []


def show(name, ok, **facts):
    print(json.dumps({"name": name, "ok": bool(ok), **facts}), flush=True)
    if not ok:
        failures.append(name)


def seconds(torch, function):
    wait = (torch.cuda.synchronize if torch.cuda.is_available() else
            lambda: None)
    wait()
    start = time.perf_counter()
    result = function()
    wait()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


# --- the activation hook on the Wan VAE -----------------------------------

def make_vae(torch):
    if os.environ.get("DIFFUSERS_SRC"):
        sys.path.insert(0, os.environ["DIFFUSERS_SRC"])
    from diffusers.models.autoencoders.autoencoder_kl_wan import (
        AutoencoderKLWan)
    torch.manual_seed(0)
    on_device = torch.cuda.is_available()
    device = "cuda" if on_device else "cpu"
    vae = AutoencoderKLWan(base_dim=96 if on_device else 16)
    vae = vae.to(device, torch.bfloat16).eval()
    size = (60, 104) if on_device else (8, 8)
    latent = torch.randn(1, 16, 3, *size, device=device, dtype=torch.bfloat16)
    return vae, lambda: vae.decode(latent, return_dict=False)[0]


def traced(torch, hook, vae, decode, path, runs):
    """Decodes with `hook` attached; returns the fastest, the trace of one."""
    os.environ["FASTVIDEO_TRACE_OUTPUT"] = path
    handle = hook.attach_activation_trace(vae)
    seconds(torch, decode)
    hook.detach_activation_trace(handle)
    os.environ["FASTVIDEO_TRACE_OUTPUT"] = path + ".timing"
    times = []
    for _ in range(runs):
        handle = hook.attach_activation_trace(vae)

        def decode_and_write():
            decode()
            if hasattr(handle, "flush"):
                handle.flush()
        times.append(seconds(torch, decode_and_write))
        hook.detach_activation_trace(handle)
    return times


def compare(theirs, ours):
    """Names of the first differing records: keys, order, shapes, dtypes exactly,
    numbers within what summing in another order gives."""
    def near(key, a, b, record):
        if isinstance(a, str) or isinstance(b, str) or key in ("shape", "step"):
            return a == b
        if a != a or b != b:
            return a != a and b != b
        scale = abs(a)
        if key in ("sum", "mean"):  # cancel: judged by the magnitudes summed
            count = 1
            for size in record["shape"]:
                count *= size
            scale = max(scale, abs(record["abs_mean"]) *
                        (count if key == "sum" else 1))
        return abs(a - b) <= (2e-5 if key == "std" else 5e-6) * scale + 1e-30
    differing = []
    with open(theirs) as left, open(ours) as right:
        left, right = left.readlines(), right.readlines()
    for a, b in zip(left, right):
        a, b = json.loads(a), json.loads(b)
        same = list(a) == list(b) and all(
            near(k, a[k], b[k], a) for k in a)
        if not same:
            differing.append([a, b])
    return len(left), len(right), differing


def check_hook(torch, folder):
    import firstframe
    sys.path.insert(0, os.environ["FASTVIDEO_SRC"])
    from fastvideo.hooks import activation_trace as fastvideo
    os.environ["FASTVIDEO_TRACE_ACTIVATIONS"] = "1"
    with torch.no_grad():
        vae, decode = make_vae(torch)
        for _ in range(3):
            bare = seconds(torch, decode)
        for stats in ("abs_mean,sum,min,max,mean,std,shape,dtype",
                      "abs_mean,sum"):
            os.environ["FASTVIDEO_TRACE_STATS"] = stats
            label = "all" if "min" in stats else "default"
            theirs = os.path.join(folder, "fastvideo_%s.jsonl" % label)
            ours = os.path.join(folder, "firstframe_%s.jsonl" % label)
            their_s = traced(torch, fastvideo, vae, decode, theirs, 3)
            our_s = traced(torch, firstframe_hooks(firstframe), vae, decode,
                           ours, 7)
            bare = min([bare] + [seconds(torch, decode) for _ in range(5)])
            cost = min(their_s) - bare, min(our_s) - bare
            if label == "all":
                records, our_records, differing = compare(theirs, ours)
                show("hook_equal", records == our_records and not differing,
                     records=records, firstframe_records=our_records,
                     differing=len(differing), first=differing[:2])
            diff = subprocess.run([os.environ["TRACE_DIFF"], theirs, ours],
                                  stdout=subprocess.PIPE, text=True)
            show("hook_trace_diff_" + label, diff.returncode == 0,
                 exit_code=diff.returncode, says=diff.stdout[:1500])
            show("hook_cost_" + label, cost[0] >= 10 * cost[1],
                 ratio=cost[0] / max(cost[1], 1e-9), wanted=10,
                 decode_ms=bare * 1e3, fastvideo_ms=cost[0] * 1e3,
                 firstframe_ms=cost[1] * 1e3, fastvideo_samples_s=their_s,
                 firstframe_samples_s=our_s)


def firstframe_hooks(firstframe):
    class Hooks:
        attach_activation_trace = staticmethod(
            firstframe.attach_activation_trace)
        detach_activation_trace = staticmethod(
            firstframe.detach_activation_trace)
    return Hooks


# --- loading ---------------------------------------------------------------

def check_load(torch, folder):
    import firstframe
    from safetensors.torch import load_file, save_file
    path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    generator = torch.Generator("cuda").manual_seed(1)
    tensors = {}
    for i in range(30):  # as a 1.3 B transformer in bfloat16: 2.8 GB
        for k, shape in enumerate([(1536, 1536)] * 8 + [(8960, 1536)] * 2 +
                                  [(1536,)] * 3):
            tensors["blocks.%d.%d" % (i, k)] = torch.randn(
                shape, generator=generator, device="cuda",
                dtype=torch.bfloat16).cpu()
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.empty(0, 3)
    tensors["float8"] = torch.randn(64, 3).to(torch.float8_e4m3fn)
    save_file(tensors, path)
    size = os.path.getsize(path)
    expected = load_file(path, device="cuda")
    found = firstframe.load_file(path, device="cuda")
    same = set(found) == set(expected)
    for name, tensor in expected.items():
        other = found[name]
        same &= (other.dtype == tensor.dtype and other.shape == tensor.shape and
                 other.device == tensor.device and torch.equal(
                     other.reshape(-1).view(torch.uint8),
                     tensor.reshape(-1).view(torch.uint8)))
    before = torch.cuda.mem_get_info()[0]
    keep = found["scalar"]
    del found
    gc.collect()
    held = torch.cuda.mem_get_info()[0] - before
    value = keep.item()
    del keep, other
    gc.collect()
    freed = torch.cuda.mem_get_info()[0] - before
    show("load_equal", same and value == 2.5, tensors=len(expected),
         bytes=size)
    show("load_lifetime", held < size // 2 <= freed, freed_while_held=held,
         freed_after=freed)
    del expected, tensor
    gc.collect()
    torch.cuda.empty_cache()
    theirs, ours = [], []
    for _ in range(4):
        theirs.append(seconds(torch, lambda: load_file(path, device="cuda")))
        torch.cuda.empty_cache()
        ours.append(seconds(torch, lambda: firstframe.load_file(
            path, device="cuda")))
    ratio = statistics.median(theirs[1:]) / statistics.median(ours[1:])
    show("load_speed", ratio >= 8, ratio=ratio, wanted=8,
         safetensors_gb_per_s=[size / 1e9 / s for s in theirs],
         firstframe_gb_per_s=[size / 1e9 / s for s in ours], bytes=size)
    os.unlink(path)


# --- offload ---------------------------------------------------------------

def check_offload(torch, folder):
    from firstframe import frozen_offload
    layers = [torch.nn.Linear(8192, 8192, bias=False, device="cuda") for _ in range(12)]
    layers.append(torch.nn.BatchNorm1d(16))
    module = torch.nn.Sequential(*layers).to("cuda").eval()
    module[11].weight = module[10].weight  # tied
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    expected = [p.detach().double().sum().item()
                for p in module.state_dict().values()]
    theirs = [seconds(torch, lambda: module.to("cpu") and
                      module.to("cuda") and None) for _ in range(2)]
    frozen_offload.unload(module)
    frozen_offload.load(module, "cuda")  # makes the host copies
    frozen_offload.unload(module)
    on_host = all(p.device.type == "cpu" for p in module.parameters())
    torch.cuda.empty_cache()
    ours = []
    for _ in range(5):
        ours.append(seconds(torch, lambda: frozen_offload.load(
            module, "cuda") and None))
        if _ < 4:
            ours[-1] += seconds(torch, lambda: frozen_offload.unload(
                module) and None)
    found = [p.detach().double().sum().item()
             for p in module.state_dict().values()]
    tied = (module[11].weight.data_ptr() == module[10].weight.data_ptr())
    show("offload_equal", found == expected and tied and on_host, bytes=size)
    ratio = statistics.median(theirs) / statistics.median(ours)
    show("offload_cycle", ratio >= 40, ratio=ratio, wanted=40,
         module_to_s=theirs, frozen_offload_s=ours,
         load_gb_per_s=[size / 1e9 / s for s in ours])


CHECKS = {"hook": check_hook, "load": check_load, "offload": check_offload}


def main():
    # Python puts this folder first, whose sources have no library beside them.
    sys.path.pop(0)
    import torch
    folder = sys.argv[1]
    if not torch.cuda.is_available() and sys.argv[2:] != ["hook"]:
        print("gpu_check: no CUDA device", file=sys.stderr)
        return 3
    torch.backends.cudnn.benchmark = False
    for name in sys.argv[2:] or list(CHECKS):
        try:
            CHECKS[name](torch, folder)
        except Exception as error:  # the others still run
            import traceback
            traceback.print_exc()
            show(name, False, error=repr(error))
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
