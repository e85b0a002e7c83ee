"""Writes the dumps here: one small network, seen by four tools.

    python3 make_foreign.py FOLDER

Needs torch and nvdlfw_inspect (the logger of TransformerEngine's debug
features). Each dump is written twice: of the network, and (..._bug) of the same
with the second matrix of layer 5 scaled by 1.08.
"""

import json
import pathlib
import sys
import zlib

import nvdlfw_inspect.logging as nvdlfw
import torch

LAYERS, WIDTH, TOKENS = 8, 64, 256


def run(bug):
    """Yields (module, class, input, output, weight), children first."""
    torch.manual_seed(7)
    x = torch.randn(TOKENS, WIDTH)
    for layer in range(LAYERS):
        first = torch.randn(2 * WIDTH, WIDTH) / WIDTH**0.5
        second = torch.randn(WIDTH, 2 * WIDTH) / (2 * WIDTH) ** 0.5
        # A port's other rounding.
        second += second * 1e-7 * torch.randn_like(second) * bug
        if bug and layer == 5:
            second *= 1.08
        h = x @ first.T
        yield f"layers.{layer}.w1", "Linear", x, h, first
        a = torch.nn.functional.silu(h)
        y = a @ second.T
        yield f"layers.{layer}.w2", "Linear", a, y, second
        x = x + 0.5 * y


def torchtitan(rows, path):
    # dump_captures_to_file of torchtitan/tools/activation_tracer.py.
    rows = list(rows)
    with open(path, "w") as f:
        f.write(f"Total captured activations: {len(rows)}\n")
        f.write("Excluded ops dispatched: t, view\n")
        f.write("=" * 80 + "\n\n")
        for module, _, _, t, _ in rows:
            f.write(f"[{module}/op_0_mm]\n")
            f.write(f"  Shape: {t.shape}, Dtype: {t.dtype}\n")
            f.write(f"  L1 norm:  {t.norm(p=1).item():.6e}\n")
            f.write(f"  L2 norm:  {t.norm(p=2).item():.6e}\n")
            f.write(f"  Min:      {t.min().item():.6e}\n")
            f.write(f"  Max:      {t.max().item():.6e}\n")
            f.write(f"  Mean:     {t.mean().item():.6e}\n")
            f.write("  Location: common/feed_forward.py:42\n\n")


def transformer_engine(rows, folder, name):
    # The real logger; the names that LogTensorStats gives it.
    logger = nvdlfw.DefaultLogger() if hasattr(nvdlfw, "DefaultLogger") else None
    for cls in vars(nvdlfw).values():
        if logger is None and isinstance(cls, type) and hasattr(cls, "_initialize_stats_logger"):
            logger = cls.__new__(cls)
    logger.root_log_dir = str(folder)
    logger._get_log_file_name = lambda *_: str(folder / name)
    logger._initialize_stats_logger("logs")
    for module, _, x, y, w in rows:
        for tensor, t in (("activation", x), ("weight", w), ("output", y)):
            for stat, value in (
                ("max", t.max()), ("min", t.min()), ("mean", t.mean()),
                ("std", t.std()), ("l1_norm", t.norm(p=1)),
                ("l2_norm", t.norm(p=2)), ("cur_amax", t.abs().max()),
            ):  # fmt: skip
                logger.log_scalar(f"decoder.{module}_{tensor}_{stat}", value.item(), 3)
    logger.stats_logger.handlers.clear()
    (folder / "logs").rmdir()


def msprobe_tensor(t, mode):
    entry = {"type": "torch.Tensor", "dtype": str(t.dtype), "shape": list(t.shape)}
    if mode == "statistics":
        entry["Max"] = t.max().item()
        entry["Min"] = t.min().item()
        entry["Mean"] = t.mean().item()
        entry["Norm"] = t.norm().item()
    entry["requires_grad"] = False
    if mode == "md5":
        entry["md5"] = f"{zlib.crc32(t.contiguous().numpy().tobytes()):08x}"
    return entry


def msprobe(rows, path, mode):
    # StatisticsDataProcessor and DataWriter of msprobe/core/dump/data_dump.
    data = {}
    for module, name, x, y, _ in rows:
        data[f"Module.{module}.{name}.forward.0"] = {
            "input_args": [msprobe_tensor(x, mode)],
            "input_kwargs": {},
            "output": [msprobe_tensor(y, mode)],
        }
    dump = {
        "task": "statistics",
        "level": "L0",
        "framework": "pytorch",
        "dump_data_dir": None,
        "data": data,
    }
    with open(path, "w") as f:
        json.dump(dump, f, indent=1)


def sglang_info(t):
    return {
        "shape": list(t.shape),
        "dtype": str(t.dtype),
        "stats": {
            "mean": t.mean().item(),
            "abs_mean": t.abs().mean().item(),
            "std": t.std().item(),
            "min": t.min().item(),
            "max": t.max().item(),
            "percentiles": {},
        },
        "sample": None,
    }


def sglang(baseline, target, path):
    # TensorComparisonRecord of sglang/srt/debug_utils/comparator.
    with open(path, "w") as f:
        f.write(json.dumps({"warnings": [], "type": "config", "config": {"diff_threshold": 0.001}}) + "\n")
        for (module, _, _, a, _), (_, _, _, b, _) in zip(baseline, target):
            _, layer, name = module.split(".")
            file = f"step=3___rank=0___name={name}___layer_id={layer}.pt"
            rel = ((a - b).norm() ** 2 / (a.norm() ** 2 + b.norm() ** 2)).item()
            record = {
                "warnings": [],
                "location": {"step": 3},
                "name": name,
                "baseline": sglang_info(a),
                "target": sglang_info(b),
                "unified_shape": list(a.shape),
                "shape_mismatch": False,
                "diff": {
                    "rel_diff": rel,
                    "max_abs_diff": (a - b).abs().max().item(),
                    "mean_abs_diff": (a - b).abs().mean().item(),
                    "max_diff_coord": [0, 0],
                    "baseline_at_max": a.max().item(),
                    "target_at_max": b.max().item(),
                    "passed": rel <= 1e-3,
                },
                "type": "comparison_tensor",
                "raw_bundle_info": {
                    "x": {"files": [{"filename": file}]},
                    "y": {"files": [{"filename": file}]},
                },
            }
            f.write(json.dumps(record) + "\n")
        f.write(json.dumps({"warnings": [], "type": "summary", "total": 16, "passed": 15, "failed": 1, "skipped": 0}) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    for bug, suffix in ((0, ""), (1, "_bug")):
        torchtitan(run(bug), folder / f"torchtitan{suffix}.log")
        transformer_engine(run(bug), folder, f"transformer_engine{suffix}.log")
        msprobe(run(bug), folder / f"msprobe{suffix}.json", "statistics")
        msprobe(run(bug), folder / f"msprobe_md5{suffix}.json", "md5")
    # One after the other: both draw from the same generator.
    sglang(list(run(0)), list(run(1)), folder / "sglang.jsonl")


if __name__ == "__main__":
    main()
