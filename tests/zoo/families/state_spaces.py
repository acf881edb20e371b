"""State-space, recurrent and hybrid models."""

from zoo.architecture import Architecture, entries

from .decoders import GEMMA, LLAMA, PLAIN, labelled, text

MAMBA = PLAIN | {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
MAMBA2 = MAMBA | {"num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4}

ENTRIES = entries(
    "state-space",
    (
        Architecture("MambaForCausalLM", MAMBA, text),
        Architecture("MambaForCausalLM", MAMBA, labelled, "train"),
        Architecture("MambaForCausalLM", MAMBA | {"use_cache": True}, text, "generate"),
        Architecture("Mamba2ForCausalLM", MAMBA2, text),
        Architecture("FalconMambaForCausalLM", MAMBA, text),
        Architecture(
            "JambaForCausalLM",
            LLAMA
            | {
                "num_experts": 2,
                "attn_layer_period": 2,
                "attn_layer_offset": 1,
                "expert_layer_period": 2,
                "expert_layer_offset": 1,
                "mamba_d_state": 8,
                "mamba_dt_rank": 4,
                "use_mamba_kernels": False,
            },
            text,
        ),
        Architecture(
            "RwkvForCausalLM", PLAIN | {"hidden_size": 32, "num_hidden_layers": 2, "context_length": 32}, text
        ),
        Architecture(
            "RecurrentGemmaForCausalLM",
            GEMMA | {"num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 8},
            text,
        ),
        Architecture(
            "Qwen3NextForCausalLM",
            GEMMA
            | {
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 24,
                "shared_expert_intermediate_size": 24,
                "layer_types": ["linear_attention", "full_attention"],
                "linear_num_key_heads": 2,
                "linear_num_value_heads": 4,
                "linear_key_head_dim": 8,
                "linear_value_head_dim": 8,
            },
            text,
        ),
        Architecture(
            "BambaForCausalLM",
            LLAMA
            | {
                "attn_layer_indices": [1],
                "mamba_n_heads": 8,
                "mamba_d_head": 8,
                "mamba_d_state": 8,
                "mamba_n_groups": 2,
                "mamba_chunk_size": 4,
            },
            text,
        ),
    ),
)
