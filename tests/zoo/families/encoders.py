"""Encoders of text."""

from zoo.architecture import Architecture, entries, tokens

from .decoders import padded, text

BERT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 2,
}


def masked() -> dict:
    return {"input_ids": tokens(), "labels": tokens()}


def long_text() -> dict:
    return {"input_ids": tokens(16)}


ENTRIES = entries(
    "encoder",
    (
        Architecture("BertModel", BERT, padded),
        Architecture("BertForMaskedLM", BERT, masked, "train"),
        Architecture("RobertaModel", BERT, text),
        Architecture(
            "DistilBertModel", {"vocab_size": 99, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}, padded
        ),
        Architecture("AlbertModel", BERT | {"embedding_size": 16}, text),
        Architecture("ElectraModel", BERT | {"embedding_size": 16}, padded),
        Architecture(
            "DebertaV2Model",
            BERT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
            padded,
        ),
        Architecture("MPNetModel", BERT, padded),
        Architecture("ModernBertModel", BERT | {"local_attention": 4, "global_attn_every_n_layers": 2}, text),
        Architecture("FNetModel", BERT, text),
        Architecture("LongformerModel", BERT | {"attention_window": 4}, padded),
        Architecture(
            "BigBirdModel",
            BERT | {"attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 1},
            long_text,
        ),
        Architecture("FunnelModel", {"vocab_size": 99, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48}, text),
        Architecture("ConvBertModel", BERT | {"embedding_size": 16, "head_ratio": 2}, padded),
        Architecture("SqueezeBertModel", BERT | {"embedding_size": 32}, text),
        Architecture("XLNetModel", {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}, text),
        Architecture("EsmModel", BERT | {"mask_token_id": 3}, padded),
        Architecture("NystromformerModel", BERT | {"num_landmarks": 4, "segment_means_seq_len": 16}, long_text),
    ),
)
