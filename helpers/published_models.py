"""Sizes of well-known language models, each with its source: `PUBLISHED`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What of a model decides how much its cache takes, and the work of a layer."""

    n_layers: int
    n_heads: int
    n_kv_heads: int               # as many as heads: each its own; 1: all share; in between: groups share
    d_head: int
    context: int                  # the longest text it was released for, in tokens
    source: str
    latent: tuple | None = None   # (d_c, d_r): numbers a token and layer, where latents are kept
    d_ff: int | None = None       # the width of its MLP, given where d_model is n_heads · d_head
    gated: bool = False           # whether that MLP has a third matrix


PUBLISHED = {
    "GPT-3": Sizes(96, 96, 96, 128, 2048, "Brown et al. 2020, table 2.1", d_ff=49152),
    "Llama 2 7B": Sizes(32, 32, 32, 128, 4096, "Touvron et al. 2023 and its published configuration",
                        d_ff=11008, gated=True),
    "Llama 3 8B": Sizes(32, 32, 8, 128, 8192, "Grattafiori et al. 2024, table 3; its model card",
                        d_ff=14336, gated=True),
    "Llama 3 70B": Sizes(80, 64, 8, 128, 8192, "Grattafiori et al. 2024, table 3; its model card",
                         d_ff=28672, gated=True),
    "PaLM 540B": Sizes(118, 48, 1, 256, 2048, "Chowdhery et al. 2022, table 1"),
    "DeepSeek-V2": Sizes(60, 128, 128, 128, 131072, "DeepSeek-AI 2024, §3.1.2", (512, 64)),
    "SmolLM2-135M": Sizes(30, 9, 3, 64, 8192, "Ben Allal et al. 2025 and its published configuration",
                          d_ff=1536, gated=True),
}
