"""Models that read one sequence and write another."""

from zoo.architecture import Architecture, entries, tokens

T5 = {
    "vocab_size": 99,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "use_cache": False,
    "decoder_start_token_id": 0,
}
BART = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "forced_eos_token_id": None,
    "use_cache": False,
}


def translation() -> dict:
    return {"input_ids": tokens(), "attention_mask": (tokens() > 4).long(), "decoder_input_ids": tokens(4)}


def labelled() -> dict:
    return {"input_ids": tokens(), "labels": tokens(4)}


def source() -> dict:
    return {"input_ids": tokens()}


ENTRIES = entries(
    "encoder-decoder",
    (
        Architecture("T5ForConditionalGeneration", T5, translation),
        Architecture("T5ForConditionalGeneration", T5, labelled, "train"),
        Architecture("T5ForConditionalGeneration", T5 | {"use_cache": True}, source, "generate"),
        Architecture("BartForConditionalGeneration", BART, translation),
        Architecture("BartForConditionalGeneration", BART, labelled, "train"),
        Architecture("BartForConditionalGeneration", BART | {"use_cache": True}, source, "generate"),
        Architecture("MBartForConditionalGeneration", BART, translation),
        Architecture("PegasusForConditionalGeneration", BART, translation),
        Architecture("MarianMTModel", BART, translation),
        Architecture("LEDForConditionalGeneration", BART | {"attention_window": 4}, translation),
        Architecture("M2M100ForConditionalGeneration", BART, translation),
        Architecture("BlenderbotSmallForConditionalGeneration", BART, translation),
        Architecture("UMT5ForConditionalGeneration", T5, translation),
        Architecture("LongT5ForConditionalGeneration", T5 | {"local_radius": 4}, translation),
        Architecture(
            "ProphetNetForConditionalGeneration",
            {
                "vocab_size": 99,
                "hidden_size": 32,
                "num_encoder_layers": 2,
                "num_decoder_layers": 2,
                "num_encoder_attention_heads": 4,
                "num_decoder_attention_heads": 4,
                "encoder_ffn_dim": 48,
                "decoder_ffn_dim": 48,
                "max_position_embeddings": 32,
                "decoder_start_token_id": 0,
                "use_cache": False,
            },
            translation,
        ),
    ),
)
