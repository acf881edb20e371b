"""Models of sound and of other series."""

import torch

from zoo.architecture import Architecture, entries, tokens

WAVE = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 2, 2],
    "conv_kernel": [10, 3, 3],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
WHISPER = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_mel_bins": 8,
    "max_source_positions": 50,
    "max_target_positions": 20,
    "pad_token_id": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "use_cache": False,
}


def wave() -> dict:
    return {"input_values": torch.randn(2, 1000)}


def labelled_wave() -> dict:
    return {"input_values": torch.randn(2, 1000), "labels": tokens(4)}


def mels() -> dict:
    return {"input_features": torch.randn(2, 8, 100), "decoder_input_ids": tokens(4)}


def labelled_mels() -> dict:
    return {"input_features": torch.randn(2, 8, 100), "labels": tokens(4)}


ENTRIES = entries(
    "audio and series",
    (
        Architecture("WhisperForConditionalGeneration", WHISPER, mels),
        Architecture("WhisperForConditionalGeneration", WHISPER, labelled_mels, "train"),
        Architecture("Wav2Vec2ForCTC", WAVE, wave),
        Architecture("Wav2Vec2ForCTC", WAVE, labelled_wave, "train"),
        Architecture("HubertForCTC", WAVE, wave),
        Architecture("WavLMForCTC", WAVE, wave),
        Architecture("SEWForCTC", WAVE | {"squeeze_factor": 2}, wave),
        Architecture("UniSpeechForCTC", WAVE | {"num_ctc_classes": 99}, wave),
        Architecture(
            "ASTForAudioClassification",
            {
                "hidden_size": 32,
                "intermediate_size": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "patch_size": 4,
                "max_length": 24,
                "num_mel_bins": 16,
                "frequency_stride": 4,
                "time_stride": 4,
            },
            lambda: {"input_values": torch.randn(2, 24, 16)},
        ),
        Architecture(
            "EncodecModel",
            {
                "num_filters": 4,
                "hidden_size": 16,
                "upsampling_ratios": [4, 2],
                "codebook_size": 16,
                "codebook_dim": 16,
                "num_lstm_layers": 1,
                "target_bandwidths": [60.0],
            },
            lambda: {"input_values": torch.randn(1, 1, 400)},
        ),
        Architecture(
            "MoonshineForConditionalGeneration",
            {
                "vocab_size": 99,
                "hidden_size": 32,
                "intermediate_size": 48,
                "encoder_num_hidden_layers": 2,
                "decoder_num_hidden_layers": 2,
                "encoder_num_attention_heads": 4,
                "decoder_num_attention_heads": 4,
                "use_cache": False,
                "decoder_start_token_id": 0,
            },
            lambda: {"input_values": torch.randn(2, 1000), "decoder_input_ids": tokens(4)},
        ),
        Architecture(
            "PatchTSTForPrediction",
            {
                "num_input_channels": 3,
                "context_length": 16,
                "patch_length": 4,
                "patch_stride": 4,
                "prediction_length": 4,
                "d_model": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "ffn_dim": 48,
            },
            lambda: {"past_values": torch.randn(2, 16, 3), "future_values": torch.randn(2, 4, 3)},
        ),
    ),
)
