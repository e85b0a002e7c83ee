"""Writes the traces here: a tiny diffusers transformer and FastVideo's of the
same weights.

    python3 trace_pair.py wan|hunyuan FOLDER [PARAMETER*FACTOR]

Needs torch, diffusers and fastvideo. The third argument scales a parameter of
FastVideo's (of a fused qkv: its last third) and names the file ..._bug.
"""

import os
import pathlib
import sys

family, folder = sys.argv[1], pathlib.Path(sys.argv[2])
bug = sys.argv[3] if len(sys.argv) > 3 else ""
os.environ.update(
    FASTVIDEO_ATTENTION_BACKEND="TORCH_SDPA",
    MASTER_ADDR="localhost",
    MASTER_PORT="29577",
    RANK="0",
    LOCAL_RANK="0",
    WORLD_SIZE="1",
    FASTVIDEO_TRACE_ACTIVATIONS="1",
    FASTVIDEO_TRACE_LAYERS="",
    FASTVIDEO_TRACE_STATS="abs_mean,sum,min,max,mean,std,shape,dtype",
)

import torch
from fastvideo.distributed.parallel_state import (
    maybe_init_distributed_environment_and_model_parallel,
)
from fastvideo.forward_context import set_forward_context
from fastvideo.hooks.activation_trace import attach_activation_trace
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
torch.manual_seed(0)

video = torch.randn(1, 4, 2, 8, 8)
text = torch.randn(1, 12, 32)
if family == "wan":
    from diffusers import WanTransformer3DModel as Diffusers
    from fastvideo.configs.models.dits import WanVideoConfig as Config
    from fastvideo.models.dits.wanvideo import WanTransformer3DModel as FastVideo

    sizes = dict(
        num_attention_heads=2, attention_head_dim=64, in_channels=4,
        out_channels=4, text_dim=32, freq_dim=32, ffn_dim=192, num_layers=3,
        cross_attn_norm=True, qk_norm="rms_norm_across_heads", eps=1e-6,
    )  # fmt: skip
    reference = Diffusers(patch_size=(1, 2, 2), rope_max_seq_len=64, **sizes)
    timestep = torch.tensor([500.0])
    inputs = dict(
        hidden_states=video, encoder_hidden_states=text, timestep=timestep
    )
    port_inputs = inputs
else:
    from diffusers import HunyuanVideoTransformer3DModel as Diffusers
    from fastvideo.configs.models.dits import HunyuanVideoConfig as Config
    from fastvideo.models.dits.hunyuanvideo import (
        HunyuanVideoTransformer3DModel as FastVideo,
    )

    sizes = dict(
        in_channels=4, out_channels=4, num_attention_heads=2,
        attention_head_dim=64, num_layers=2, num_single_layers=2,
        num_refiner_layers=1, mlp_ratio=2.0, patch_size=2, patch_size_t=1,
        qk_norm="rms_norm", guidance_embeds=True, text_embed_dim=32,
        pooled_projection_dim=16, rope_theta=256.0, rope_axes_dim=(16, 24, 24),
    )  # fmt: skip
    reference = Diffusers(**sizes)
    pooled = torch.randn(1, 16)
    common = dict(
        hidden_states=video,
        timestep=torch.tensor([500]),
        guidance=torch.tensor([6016.0]),
    )
    inputs = dict(
        common,
        encoder_hidden_states=text,
        encoder_attention_mask=torch.ones(1, 12, dtype=torch.long),
        pooled_projections=pooled,
    )
    port_inputs = dict(common, encoder_hidden_states=[text, pooled])

torch.manual_seed(1)
for name, parameter in reference.named_parameters():
    spread = 0.5 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.02
    torch.nn.init.normal_(parameter, std=spread)
    if "norm" in name and name.endswith("weight") and parameter.dim() == 1:
        parameter.data += 1
reference = reference.eval().requires_grad_(False)

config = Config()
for name, value in sizes.items():
    setattr(config.arch_config, name, value)
if "dtype" in vars(config.arch_config):
    config.arch_config.dtype = torch.float32
config.arch_config.__post_init__()
port = FastVideo(config, sizes).eval().requires_grad_(False)
state, _ = hf_to_custom_state_dict(
    dict(reference.state_dict()),
    get_param_names_mapping(port.param_names_mapping),
)
state = {name: tensor.clone() for name, tensor in state.items()}
if bug:
    name, factor = bug.split("*")
    rows = state[name].shape[0]
    state[name][2 * rows // 3 if "qkv" in name else 0 :] *= float(factor)
port.load_state_dict(state)


def trace(model, repository, **arguments):
    path = folder / f"{family}_{repository}.jsonl"
    path.unlink(missing_ok=True)
    os.environ["FASTVIDEO_TRACE_OUTPUT"] = str(path)
    manager = attach_activation_trace(model)
    with torch.no_grad():
        output = model(**arguments)
    manager.remove_from_manager()
    return output


left = trace(reference, "diffusers", return_dict=False, **inputs)[0]
with set_forward_context(
    current_timestep=0,
    attn_metadata=None,
    forward_batch=ForwardBatch(data_type="dummy"),
):
    suffix = "_bug" if bug else ""
    right = trace(port, "fastvideo" + suffix, **port_inputs)
print("outputs apart by", ((left - right).norm() / left.norm()).item())
