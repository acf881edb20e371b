"""Mixtures of experts: a router's numbers decide what runs."""

from zoo.architecture import Architecture, entries, tokens

from .decoders import GEMMA, LLAMA, labelled, text

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}


def translation() -> dict:
    return {"input_ids": tokens(), "decoder_input_ids": tokens(4)}


ENTRIES = entries(
    "mixture of experts",
    (
        Architecture("MixtralForCausalLM", LLAMA | {"num_local_experts": 4}, text),
        Architecture("MixtralForCausalLM", LLAMA | {"num_local_experts": 4}, labelled, "train"),
        Architecture("Qwen2MoeForCausalLM", LLAMA | EXPERTS | {"shared_expert_intermediate_size": 24}, text),
        Architecture("Qwen3MoeForCausalLM", GEMMA | EXPERTS, text),
        Architecture("OlmoeForCausalLM", LLAMA | {"num_experts": 4, "num_experts_per_tok": 2}, text),
        Architecture("GraniteMoeForCausalLM", LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 2}, text),
        Architecture(
            "DeepseekV3ForCausalLM",
            LLAMA
            | {
                "num_key_value_heads": 4,
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "n_group": 2,
                "topk_group": 1,
                "moe_intermediate_size": 24,
                "first_k_dense_replace": 1,
                "q_lora_rank": 16,
                "kv_lora_rank": 16,
                "qk_rope_head_dim": 8,
                "qk_nope_head_dim": 8,
                "v_head_dim": 8,
            },
            text,
        ),
        Architecture("GptOssForCausalLM", GEMMA | {"num_local_experts": 4, "sliding_window": 4}, text),
        Architecture("PhimoeForCausalLM", LLAMA | {"num_local_experts": 4}, text),
        Architecture(
            "SwitchTransformersForConditionalGeneration",
            {
                "vocab_size": 99,
                "d_model": 32,
                "d_kv": 8,
                "d_ff": 48,
                "num_layers": 2,
                "num_decoder_layers": 2,
                "num_heads": 4,
                "num_experts": 4,
                "use_cache": False,
                "decoder_start_token_id": 0,
            },
            translation,
        ),
    ),
)
