"""Llama with 70 billion parameters, for ``tensorviz capture llama_70b.py --fake``: shapes without memory for values."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def llama_70b() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=128_256,
        hidden_size=8192,
        intermediate_size=28_672,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def example_inputs() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.zeros(1, 512, dtype=torch.int64)}
