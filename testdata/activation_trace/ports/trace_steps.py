"""Writes healthy traces of a ten-block Wan transformer over four steps.

    python3 trace_steps.py FOLDER FIRST LAST

For each seed from FIRST to before LAST: diffusers' and FastVideo's model with the
same weights, in float32 and in bfloat16. Needs torch, diffusers and fastvideo.
"""

import os
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
os.environ.update(
    FASTVIDEO_ATTENTION_BACKEND="TORCH_SDPA",
    MASTER_ADDR="localhost",
    MASTER_PORT="29578",
    RANK="0",
    LOCAL_RANK="0",
    WORLD_SIZE="1",
    FASTVIDEO_TRACE_ACTIVATIONS="1",
    FASTVIDEO_TRACE_LAYERS="",
    FASTVIDEO_TRACE_STATS="abs_mean,sum,min,max,mean,std,shape,dtype",
)

import torch
from diffusers import WanTransformer3DModel as Diffusers
from fastvideo.configs.models.dits import WanVideoConfig
from fastvideo.distributed.parallel_state import (
    maybe_init_distributed_environment_and_model_parallel,
)
from fastvideo.forward_context import set_forward_context
from fastvideo.hooks.activation_trace import attach_activation_trace, trace_step
from fastvideo.models.dits.wanvideo import WanTransformer3DModel as FastVideo
from fastvideo.models.loader.utils import (
    get_param_names_mapping,
    hf_to_custom_state_dict,
)
from fastvideo.pipelines.pipeline_batch_info import ForwardBatch
from fastvideo.platforms import current_platform

# FastVideo has no attention backend for CPUs of its own; this one runs there.
type(current_platform).get_attn_backend_cls = classmethod(
    lambda cls, *args, **kwargs: "fastvideo.attention.backends.sdpa.SDPABackend"
)
torch.set_num_threads(1)
maybe_init_distributed_environment_and_model_parallel(1, 1)

SIZES = dict(
    num_attention_heads=2, attention_head_dim=64, in_channels=4, out_channels=4,
    text_dim=32, freq_dim=32, ffn_dim=256, num_layers=10, cross_attn_norm=True,
    qk_norm="rms_norm_across_heads", eps=1e-6,
)  # fmt: skip


def models(seed):
    torch.manual_seed(seed)
    reference = Diffusers(patch_size=(1, 2, 2), rope_max_seq_len=64, **SIZES)
    for name, parameter in reference.named_parameters():
        spread = 0.7 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.02
        torch.nn.init.normal_(parameter, std=spread)
        if "norm" in name and name.endswith("weight") and parameter.dim() == 1:
            parameter.data += 1
    config = WanVideoConfig()
    for name, value in SIZES.items():
        setattr(config.arch_config, name, value)
    config.arch_config.__post_init__()
    port = FastVideo(config, SIZES)
    state, _ = hf_to_custom_state_dict(
        dict(reference.state_dict()),
        get_param_names_mapping(port.param_names_mapping),
    )
    port.load_state_dict({name: tensor.clone() for name, tensor in state.items()})
    return [model.eval().requires_grad_(False) for model in (reference, port)]


def sample(model, dtype, path, video, text):
    path.unlink(missing_ok=True)
    os.environ["FASTVIDEO_TRACE_OUTPUT"] = str(path)
    model = model.to(dtype)
    manager = attach_activation_trace(model)
    x = video.to(dtype)
    with torch.no_grad():
        for step in range(4):
            # A bfloat16 holds these exactly; 650 it would not.
            timestep = torch.tensor([896.0 - 256 * step]).to(dtype)
            with trace_step(step), set_forward_context(
                current_timestep=0,
                attn_metadata=None,
                forward_batch=ForwardBatch(data_type="dummy"),
            ):
                y = model(
                    hidden_states=x,
                    encoder_hidden_states=text.to(dtype),
                    timestep=timestep,
                    **({} if isinstance(model, FastVideo) else {"return_dict": False}),
                )
            y = y[0] if isinstance(y, tuple) else y
            x = (x - 0.25 * y).to(dtype)
    manager.remove_from_manager()


for seed in range(int(sys.argv[2]), int(sys.argv[3])):
    reference, port = models(seed)
    video, text = torch.randn(1, 4, 2, 8, 8), torch.randn(1, 12, 32)
    for dtype, suffix in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
        for model, name in ((reference, "diffusers"), (port, "fastvideo")):
            sample(model, dtype, folder / f"{seed}_{name}_{suffix}.jsonl", video, text)
