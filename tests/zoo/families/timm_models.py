"""Image models from timm, at their smallest. Needs the zoo's own environment."""

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from zoo.architecture import Entry, Program

SIZE = 96
ANY_SIZE = (
    "convnext_atto",
    "convnextv2_atto",
    "crossvit_tiny_240",
    "densenet121",
    "dla46x_c",
    "dpn48b",
    "edgenext_xx_small",
    "efficientnet_lite0",
    "efficientvit_b0",
    "fastvit_t8",
    "ghostnet_050",
    "hardcorenas_a",
    "inception_next_atto",
    "lcnet_035",
    "mambaout_femto",
    "mixnet_s",
    "mnasnet_small",
    "mobilenetv2_035",
    "mobilenetv3_small_050",
    "mobilenetv4_conv_small_035",
    "mobileone_s0",
    "mobilevit_xxs",
    "mobilevitv2_050",
    "poolformer_s12",
    "pvt_v2_b0",
    "regnetx_002",
    "regnety_002",
    "repghostnet_050",
    "repvit_m0_9",
    "resnet10t",
    "rexnetr_100",
    "skresnet18",
    "starnet_s050",
    "tiny_vit_5m_224",
    "tinynet_e",
)
OF_ONE_SIZE = (
    "cait_xxs24_224",
    "coat_lite_tiny",
    "convit_tiny",
    "deit_tiny_patch16_224",
    "gmlp_ti16_224",
    "levit_128s",
    "mixer_s32_224",
    "pit_ti_224",
    "resmlp_12_224",
    "tnt_s_patch16_224",
    "visformer_tiny",
    "vit_tiny_patch16_224",
    "xcit_nano_12_p16_224",
)
TRAINED = ("resnet10t", "mobilenetv3_small_050", "convnext_atto")


def declare_operators() -> None:
    """torchvision's Python needs its operators by name; its wheel brings them only for the torch that it was built for.

    No model here calls them.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)


_kept: list[Any] = []
"""A library's operators go when it goes."""


def make(name: str, options: Mapping[str, Any], training: bool) -> Program:
    declare_operators()
    model = importlib.import_module("timm").create_model(name, pretrained=False, num_classes=10, **options)
    x = torch.randn(2, 3, SIZE, SIZE)
    if training:
        return Program(model, block=lambda: functional.cross_entropy(model(x), torch.tensor([1, 2])).backward())
    return Program(model.eval(), {"x": x})


def entry(name: str, training: bool = False, **options: Any) -> Entry:
    made: Callable[[], Program] = partial(make, name, options, training)
    return Entry(f"{name}, train" if training else name, "timm", made)


ENTRIES = (
    *(entry(name) for name in ANY_SIZE),
    *(entry(name, img_size=SIZE) for name in OF_ONE_SIZE),
    *(entry(name, training=True) for name in TRAINED),
)
