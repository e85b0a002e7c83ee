"""Runs VideoX-Fun's own metrics module and this package side by side on the same
requests and the same training loop, on a device or on the host, and compares what
they write. Prints one JSON line a check.

usage: metrics_check.py FOLDER

FOLDER gets theirs.jsonl and ours.jsonl. Needs accelerate and diffusers
(DIFFUSERS_SRC names its src folder, when it is not installed); VIDEOX_PERF_SRC
names the original module's file. Exit status 1: something differs.

Counts, tokens, FLOPs and names must be equal. Times must be within 3 % and 0.15 ms
a call: each side also measures what the other one's clock and events cost.
"""

import importlib.util
import json
import os
import sys
import types

WARMUP, EVERY, STEPS = 2, 4, 12
REQUEST_EXACT = ("rank", "world_size", "req", "warmup", "device",
                 "peak_alloc_bytes", "peak_reserved_bytes")
DIT_EXACT = ("params", "tokens", "batch", "devices", "flops_per_fwd",
             "attn_share", "peak_tflops")
WINDOW_EXACT = ("rank", "world_size", "step_first", "step_last", "steps",
                "warmup_excluded", "micro_steps", "device")
RATE_EXACT = ("samples", "dp", "params", "trainable", "tokens", "priced_steps",
              "flops_coef", "flops_coef_hw", "flops_coef_reason",
              "flops_per_step", "attn_share", "devices", "peak_tflops")


def load_original(model_classes):
    """VideoX-Fun's module with stand-ins for the packages that it hooks."""
    def package(name, **members):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(members)
        return module
    package("videox_fun")
    package("videox_fun.utils")
    package("videox_fun.models", **{c.__name__: c for c in model_classes})
    if importlib.util.find_spec("transformers") is None:
        package("transformers", PreTrainedModel=type("PreTrainedModel", (), {}))
    name = "videox_fun.utils.perf_metrics"
    spec = importlib.util.spec_from_file_location(
        name, os.environ["VIDEOX_PERF_SRC"])
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_classes(torch):
    """The models, as classes of their own: the classes get wrapped."""
    if os.environ.get("DIFFUSERS_SRC"):
        sys.path.insert(0, os.environ["DIFFUSERS_SRC"])
    from diffusers.models.autoencoders.autoencoder_kl_wan import (
        AutoencoderKLWan)
    from diffusers.models.modeling_utils import ModelMixin
    from diffusers.models.transformers.transformer_wan import (
        WanTransformer3DModel)

    class TinyTextEncoder(ModelMixin):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(100, 32)
            self.out = torch.nn.Linear(32, 32)

        def forward(self, ids):
            return self.out(self.embed(ids))
    return WanTransformer3DModel, AutoencoderKLWan, TinyTextEncoder


class Models:
    def __init__(self, torch, classes, device):
        transformer, vae, text = classes
        self.torch, self.device = torch, device
        self.heads = 12 if device == "cuda" else 2
        self.transformer_class = transformer
        self.transformer = self.make_transformer(2)
        self.vae = vae(base_dim=32 if device == "cuda" else 8).to(device)
        self.text_encoder = text().to(device)

    def make_transformer(self, layers):
        return self.transformer_class(
            patch_size=(1, 2, 2), num_attention_heads=self.heads,
            attention_head_dim=24, text_dim=32, freq_dim=32,
            ffn_dim=64 * self.heads, num_layers=layers).to(self.device)

    def randn(self, *shape):
        return self.torch.randn(*shape, device=self.device)

    def text(self, batch):
        ids = self.torch.arange(7, device=self.device).repeat(batch, 1)
        return self.text_encoder(ids)

    def denoise(self, transformer, latent, text):
        time = self.torch.full((latent.shape[0],), 3, device=self.device)
        return transformer(hidden_states=latent, timestep=time,
                           encoder_hidden_states=text, return_dict=False)[0]


class Pipe:
    """What a pipeline is to both: components, and a call."""

    def __init__(self, models):
        self.models = models
        self.transformer, self.vae = models.transformer, models.vae
        self.components = {"transformer": models.transformer,
                           "vae": models.vae,
                           "text_encoder": models.text_encoder,
                           "scheduler": object()}

    def __call__(self, frames, batch, steps, fail=False):
        models = self.models
        with models.torch.no_grad():
            text = models.text(batch)
            latent = models.randn(batch, 16, frames, 16, 16)
            for _ in range(steps):
                latent = models.denoise(self.transformer, latent, text)
            if fail:
                raise ValueError("as some requests do")
            return self.vae.decode(latent, return_dict=False)[0]


def run_requests(pipe):
    for frames, batch, steps, fail in ((1, 1, 2, False), (1, 2, 3, False),
                                       (3, 1, 4, False), (2, 1, 3, True),
                                       (2, 2, 5, False), (3, 2, 4, False)):
        try:
            pipe(frames, batch, steps, fail)
        except ValueError:
            pass


class Trainer:
    """A loop as VideoX-Fun's scripts have it, two micro-steps a step."""

    def __init__(self, torch, models, modules):
        from accelerate import Accelerator
        self.torch, self.models = torch, models
        self.accelerator = Accelerator(gradient_accumulation_steps=2,
                                       cpu=models.device == "cpu")
        parameters = [p for m in modules for p in m.parameters()]
        # The first optimizer that steps is whose steps count.
        self.optimizer = self.accelerator.prepare(
            torch.optim.AdamW(parameters, lr=1e-4))

    def train(self, transformer, steps):
        models, accelerator = self.models, self.accelerator
        transformer = accelerator.prepare(transformer)
        transformer.train()
        for i in range(2 * steps):
            frames = 1 + i // 2 % 2 * 4
            with accelerator.accumulate(transformer):
                with self.torch.no_grad():
                    video = models.randn(1, 3, frames, 64, 64)
                    latent = models.vae.encode(video).latent_dist.mean
                    text = models.text(1)
                loss = (models.denoise(transformer, latent, text) -
                        latent).square().mean()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(transformer.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
                loss.item()  # as those loops do


def train_both_ways(torch, models):
    """A small model in full; then a larger one, mostly frozen, with gradient
    checkpointing: the larger one becomes the model that is priced."""
    small, larger = models.make_transformer(2), models.make_transformer(3)
    trainer = Trainer(torch, models, [small, larger])
    trainer.train(small, STEPS)
    for name, parameter in larger.named_parameters():
        parameter.requires_grad = "scale_shift_table" in name
    larger.enable_gradient_checkpointing()
    trainer.train(larger, STEPS)


# --- comparison ------------------------------------------------------------

class Comparison:
    def __init__(self):
        self.exact, self.differing, self.times = 0, [], []

    def equal(self, where, theirs, ours, keys):
        for key in keys:
            a, b = theirs.get(key), ours.get(key)
            self.exact += 1
            if a != b:
                self.differing.append([where, key, a, b])

    def near(self, where, theirs_s, ours_s, calls):
        difference = abs(theirs_s - ours_s)
        self.times.append((difference / calls, where, theirs_s, ours_s, calls))
        if difference > 0.03 * theirs_s + 1.5e-4 * calls:
            self.differing.append([where, "time", theirs_s, ours_s])

    def requests(self, theirs, ours):
        where = "request %d" % theirs["req"]
        self.equal(where, theirs, ours, REQUEST_EXACT)
        self.near(where, theirs["e2e_s"], ours["e2e_s"], 1)
        self.equal(where, {"stages": sorted(theirs["stages"])},
                   {"stages": sorted(ours["stages"])}, ["stages"])
        for name, stage in theirs["stages"].items():
            other = ours["stages"].get(name, {"count": 0, "total_ms": 0})
            self.equal(where + " " + name, stage, other, ["count"])
            self.near(where + " " + name, stage["total_ms"] / 1e3,
                      other["total_ms"] / 1e3, stage["count"])
        self.equal(where, theirs["dit"], ours["dit"], DIT_EXACT)

    @staticmethod
    def merge(phases):
        """The outer side's `opt` has what the inner one does at the end of a
        step, which to that is `other` of the next."""
        phases = dict(phases)
        phases["opt + other"] = phases.pop("opt") + phases.pop("other")
        return phases

    def windows(self, theirs, ours):
        where = "steps %d-%d" % (theirs["step_first"], theirs["step_last"])
        self.equal(where, theirs, ours, WINDOW_EXACT)
        self.equal(where, theirs["throughput"], ours["throughput"], RATE_EXACT)
        self.equal(where, {"phases": list(theirs["phases_s"])},
                   {"phases": list(ours["phases_s"])}, ["phases"])
        left, right = (self.merge(w["phases_s"]) for w in (theirs, ours))
        for name, value in left.items():
            self.near(where + " " + name, value, right.get(name, 0),
                      12 if "other" in name or name == "prep" else 2)
        self.near(where, theirs["step_s_p50"], ours["step_s_p50"], 12)


def read(path):
    with open(path) as file:
        records = [json.loads(line) for line in file]
    return ([r for r in records if r["kind"] == "request"],
            [r for r in records if r["kind"] == "train_window"])


def compare(folder):
    theirs, ours = (read(os.path.join(folder, name + ".jsonl"))
                    for name in ("theirs", "ours"))
    for what, left, right in zip(("requests", "windows"), theirs, ours):
        comparison = Comparison()
        for a, b in zip(left, right):
            getattr(comparison, what)(a, b)
        ok = len(left) == len(right) > 0 and not comparison.differing
        worst = sorted(comparison.times, reverse=True)[:3]
        print(json.dumps({
            "name": "metrics_" + what, "ok": ok, "records": len(left),
            "our_records": len(right), "exact_values": comparison.exact,
            "times": len(comparison.times),
            "largest_difference_us_a_call": [
                [round(d * 1e6, 1), where, a, b] for d, where, a, b, _ in worst],
            "differing": comparison.differing[:20]}), flush=True)
        yield ok


def main():
    # Python puts this folder first, whose sources have no library beside them.
    sys.path.pop(0)
    import torch
    import firstframe
    folder = sys.argv[1]
    torch.manual_seed(0)
    classes = make_classes(torch)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    models = Models(torch, classes, device)
    os.environ.update(VIDEOX_PERF="1", VIDEOX_PERF_WARMUP=str(WARMUP),
                      VIDEOX_PERF_EVERY=str(EVERY),
                      VIDEOX_PERF_TOTAL_STEPS="100")

    # Ours is the inner one, so that theirs is charged for both.
    assert firstframe.install_training(models=classes)
    os.environ["VIDEOX_PERF_JSON"] = os.path.join(folder, "theirs.jsonl")
    original = load_original(classes)
    assert original.install_training()
    pipe = original.instrument_pipeline(
        firstframe.instrument_pipeline(Pipe(models)))
    os.environ["VIDEOX_PERF_JSON"] = os.path.join(folder, "ours.jsonl")

    run_requests(pipe)
    train_both_ways(torch, models)
    original._TRAIN.finish()
    from firstframe import _perf
    _perf.finish()
    return 0 if all(list(compare(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
