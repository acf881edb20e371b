"""A part of the zoo: some models of each kind, and every program. `make zoo` does it all."""

import re
from collections.abc import Iterator

import pytest
import torch

from zoo.architecture import Entry, Program
from zoo.examination import Row, row_of
from zoo.families import FAMILIES, entries_of
from zoo.table import DOCUMENT, entry

MODELS = (
    "GPT2LMHeadModel, train",
    "LlamaForCausalLM",
    "LlamaForCausalLM, generate",
    "MixtralForCausalLM",
    "MambaForCausalLM",
    "Qwen3NextForCausalLM",
    "BertModel",
    "T5ForConditionalGeneration, train",
    "ViTForImageClassification",
    "ResNetForImageClassification, train",
    "CLIPModel",
    "WhisperForConditionalGeneration",
)
PROGRAMS = [item for family in FAMILIES if family.endswith("_programs") for item in entries_of(family)]


def all_entries() -> list[Entry]:
    return [item for family in FAMILIES for item in entries_of(family)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As `make zoo` runs: a router's choice may hang on the last bit of a sum."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def assert_documented(row: Row) -> None:
    """But for the number of operations: torch does some things once for a process, or not after a compilation."""
    before, after = entry(row).split(f"| {row.operations} |")
    assert re.search(rf"{re.escape(before)}\| \d+ \|{re.escape(after)}", DOCUMENT.read_text()), entry(row)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_reaches_the_same_bits_again_and_the_table_says_so(name: str) -> None:
    row = row_of(next(item for item in all_entries() if item.name == name))
    assert row.failure is None
    assert_documented(row)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda item: item.name)
def test_a_program_reaches_the_same_bits_again_and_the_table_says_so(program: Entry) -> None:
    row = row_of(program)
    assert row.failure is None
    assert_documented(row)


def test_the_table_has_every_program_of_the_zoo_and_no_other() -> None:
    documented = re.findall(r"^\| (.+?) \| \d+ \|", DOCUMENT.read_text(), re.MULTILINE)
    assert documented == [item.name for item in all_entries()]


def test_the_table_tells_of_no_failure() -> None:
    assert "**" not in DOCUMENT.read_text()


def test_names_are_given_once() -> None:
    names = [item.name for item in all_entries()]
    assert len(names) == len(set(names))


def test_a_program_that_raises_is_a_failure() -> None:
    def raises() -> None:
        raise ValueError("no")

    row = row_of(Entry("raises", "none", lambda: Program(torch.nn.Identity(), block=lambda: (torch.ones(2), raises()))))
    assert row.failure == "raised ValueError: no"
