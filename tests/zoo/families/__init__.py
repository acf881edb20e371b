"""The families of the zoo, in the order of its table. Each is a file of data here."""

import importlib

from zoo.architecture import Entry

FAMILIES = (
    "decoders",
    "mixtures",
    "state_spaces",
    "encoders",
    "encoder_decoders",
    "vision",
    "audio",
    "timm_models",
    "tensor_programs",
    "kind_programs",
    "training_programs",
    "derivative_programs",
    "examples",
)


def entries_of(family: str) -> tuple[Entry, ...]:
    return importlib.import_module(f"zoo.families.{family}").ENTRIES
