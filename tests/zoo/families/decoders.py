"""Decoders of text, of many designs: attention, positions, norms and gates all differ."""

from zoo.architecture import Architecture, entries, tokens

PLAIN = {"vocab_size": 99, "use_cache": False, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
GPT = {**PLAIN, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
LLAMA = {
    **PLAIN,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
FULL = {**LLAMA, "num_key_value_heads": 4}
GEMMA = {**LLAMA, "head_dim": 8}


def text() -> dict:
    return {"input_ids": tokens()}


def labelled() -> dict:
    return {"input_ids": tokens(), "labels": tokens()}


def padded() -> dict:
    mask = (tokens() > 4).long()
    return {"input_ids": tokens(), "attention_mask": mask}


ENTRIES = entries(
    "decoder",
    (
        Architecture("GPT2LMHeadModel", GPT, text),
        Architecture("GPT2LMHeadModel", GPT, padded, attention="eager"),
        Architecture("GPT2LMHeadModel", GPT, labelled, "train"),
        Architecture("GPT2LMHeadModel", GPT | {"use_cache": True}, text, "generate"),
        Architecture("LlamaForCausalLM", LLAMA, text),
        Architecture("LlamaForCausalLM", LLAMA, labelled, "train"),
        Architecture("LlamaForCausalLM", LLAMA | {"use_cache": True}, text, "generate"),
        Architecture("MistralForCausalLM", LLAMA | {"sliding_window": 4}, padded),
        Architecture("Qwen2ForCausalLM", LLAMA, text),
        Architecture("Qwen3ForCausalLM", GEMMA, padded),
        Architecture("GemmaForCausalLM", GEMMA, text),
        Architecture("Gemma2ForCausalLM", GEMMA | {"sliding_window": 4}, padded),
        Architecture("Gemma3ForCausalLM", GEMMA | {"sliding_window": 4}, text),
        Architecture("PhiForCausalLM", FULL, text),
        Architecture("Phi3ForCausalLM", LLAMA, text),
        Architecture("GPTNeoXForCausalLM", FULL, text),
        Architecture(
            "GPTNeoForCausalLM",
            PLAIN
            | {
                "hidden_size": 32,
                "num_layers": 2,
                "num_heads": 4,
                "attention_types": [[["global", "local"], 1]],
                "max_position_embeddings": 32,
                "window_size": 4,
            },
            text,
        ),
        Architecture("GPTJForCausalLM", GPT | {"rotary_dim": 4}, text),
        Architecture(
            "OPTForCausalLM",
            PLAIN
            | {
                "hidden_size": 32,
                "ffn_dim": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "max_position_embeddings": 32,
                "word_embed_proj_dim": 16,
            },
            padded,
        ),
        Architecture("BloomForCausalLM", PLAIN | {"hidden_size": 32, "n_layer": 2, "n_head": 4}, padded),
        Architecture("FalconForCausalLM", FULL | {"alibi": False}, text),
        Architecture("StableLmForCausalLM", LLAMA, text),
        Architecture("CohereForCausalLM", LLAMA, text),
        Architecture("Olmo2ForCausalLM", LLAMA, text),
        Architecture("MptForCausalLM", PLAIN | {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 32}, text),
        Architecture("CodeGenForCausalLM", GPT | {"rotary_dim": 4}, text),
        Architecture("BioGptForCausalLM", FULL, text),
        Architecture(
            "XGLMForCausalLM",
            PLAIN
            | {
                "d_model": 32,
                "ffn_dim": 48,
                "num_layers": 2,
                "attention_heads": 4,
                "max_position_embeddings": 32,
            },
            text,
        ),
        Architecture("Starcoder2ForCausalLM", LLAMA, text),
        Architecture("GraniteForCausalLM", LLAMA, text),
        Architecture("SmolLM3ForCausalLM", LLAMA, text),
        Architecture("Glm4ForCausalLM", LLAMA, text),
        Architecture("CTRLLMHeadModel", GPT | {"dff": 48}, text),
    ),
)
