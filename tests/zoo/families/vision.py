"""Models of images, and of images with text."""

import torch

from zoo.architecture import Architecture, entries, tokens

VIT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}
SWIN = {"embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4, "image_size": 32, "patch_size": 4}
CONV = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}
TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "eos_token_id": 1,
    "bos_token_id": 0,
    "pad_token_id": 2,
    "projection_dim": 16,
}


def image(size: int = 32) -> dict:
    return {"pixel_values": torch.randn(2, 3, size, size)}


def large_image() -> dict:
    return image(64)


def labelled_image() -> dict:
    return {**image(), "labels": torch.tensor([0, 1])}


def image_and_text() -> dict:
    return {**image(), "input_ids": tokens()}


def image_to_text() -> dict:
    return {**image(), "input_ids": tokens(), "attention_mask": torch.ones(2, 7, dtype=torch.long)}


ENTRIES = entries(
    "vision",
    (
        Architecture("ViTForImageClassification", VIT, image),
        Architecture("ViTForImageClassification", VIT, labelled_image, "train"),
        Architecture("DeiTForImageClassification", VIT, image),
        Architecture("SwinForImageClassification", SWIN, image),
        Architecture("Swinv2ForImageClassification", SWIN, image),
        Architecture("BeitForImageClassification", VIT | {"use_relative_position_bias": True}, image),
        Architecture("Dinov2Model", VIT | {"mlp_ratio": 2}, image),
        Architecture("ViTMAEForPreTraining", VIT | {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 1}, image),
        Architecture("ConvNextForImageClassification", CONV, large_image),
        Architecture("ConvNextV2ForImageClassification", CONV, large_image),
        Architecture(
            "ResNetForImageClassification",
            {"embedding_size": 8, **CONV, "layer_type": "basic"},
            labelled_image,
            "train",
        ),
        Architecture("RegNetForImageClassification", {"embedding_size": 8, **CONV, "groups_width": 4}, image),
        Architecture("MobileNetV2ForImageClassification", {"depth_multiplier": 0.25, "image_size": 32}, image),
        Architecture(
            "MobileViTForImageClassification",
            {
                "image_size": 64,
                "hidden_sizes": [16, 20, 24],
                "neck_hidden_sizes": [4, 8, 12, 16, 20, 24, 32],
                "num_attention_heads": 4,
            },
            large_image,
        ),
        Architecture(
            "PoolFormerForImageClassification", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}, image
        ),
        Architecture(
            "SegformerForSemanticSegmentation",
            {
                "hidden_sizes": [8, 16, 24, 32],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 2, 2, 4],
                "decoder_hidden_size": 16,
            },
            large_image,
        ),
        Architecture("FocalNetForImageClassification", {"embed_dim": 16, "depths": [1, 1], "image_size": 32}, image),
        Architecture(
            "CLIPModel",
            {"text_config": TEXT, "vision_config": VIT | {"projection_dim": 16}, "projection_dim": 16},
            image_to_text,
        ),
        Architecture("SiglipModel", {"text_config": TEXT, "vision_config": VIT}, image_and_text),
        Architecture(
            "BlipForConditionalGeneration",
            {"text_config": TEXT | {"encoder_hidden_size": 32, "use_cache": False}, "vision_config": VIT},
            image_to_text,
        ),
        Architecture(
            "PerceiverForMaskedLM",
            {
                "vocab_size": 99,
                "num_latents": 8,
                "d_latents": 32,
                "d_model": 32,
                "num_self_attends_per_block": 2,
                "num_self_attention_heads": 4,
                "num_cross_attention_heads": 4,
                "max_position_embeddings": 16,
                "qk_channels": 16,
                "v_channels": 32,
            },
            lambda: {"inputs": tokens(16)},
        ),
    ),
)
