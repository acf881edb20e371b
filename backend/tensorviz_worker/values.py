"""Which tensors exist and at which version: gives each its value, and each use the value that it was at.

Facts that autograd and the version counter complete after the dispatch has returned are settled at the next event.
"""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from tensorviz_worker import tensors
from tensorviz_worker.arguments import opaque
from tensorviz_worker.budget import Budget
from tensorviz_worker.identity import Identities, TensorRef
from tensorviz_worker.journal import to_json

_FIRST_USE = '{"kind":"external","reason":"first_use"}'
_UNOBSERVED_WRITE = '{"kind":"external","reason":"unobserved_write"}'


class Values:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._identities = Identities()
        self._tensors = self._identities.tensors
        self._unsettled: list[TensorRef] = []
        self._origin = _FIRST_USE
        self._origin_tail = False
        self._count = 0
        self._fake = False
        self.find = self._identities.find

    def come_from(self, origin: "str | None") -> None:
        """Sets the producer of the tensors that are first seen from now on, without its path: that is where they stand.

        None for tensors that nothing recorded made.
        """
        self._origin_tail = origin is not None
        self._origin = _FIRST_USE if origin is None else f'{{{origin},"path":'

    def known(self, value: Any) -> "str | None":
        """The encoded reference of a plain tensor that is still as it was recorded: the hot path."""
        ref = self._tensors.get(id(value))
        if ref is None or not ref.plain or ref() is not value or not _is_current(ref, value):
            return None
        return ref.text

    def reference(self, tensor: Tensor, path: Any) -> str:
        """The encoded reference to the tensor's value now, which is a new one if it is new or was changed unseen."""
        ref = self.find(tensor)
        if ref is None:
            return self._first(tensor, path)
        if _is_current(ref, tensor) if ref.plain else tensors.counters(tensor)[0] == ref.version:
            return ref.text
        if self._budget.stopped:
            return opaque(type(tensor), "value_limit")
        return self.next_version(ref, tensor, _UNOBSERVED_WRITE)

    def state_value(self, tensor: Tensor) -> "tuple[TensorRef | None, str | None]":
        """The value of a registered parameter or buffer, or the reason why it has none."""
        self._origin, self._origin_tail = '{"kind":"state","state":null}', False
        text = self.reference(tensor, ())
        ref = self.find(tensor)
        if ref is not None:
            return ref, None
        return None, "value_limit" if "value_limit" in text else "unsupported_tensor"

    def accept_version(self, tensors_: "Iterable[Tensor]") -> None:
        """A custom operator counts its own write before it is dispatched, so that is no write that nobody saw."""
        for tensor in tensors_:
            ref = self.find(tensor)
            if ref is not None and ref.plain:
                ref.version = tensor._version

    def forget(self, tensor: Tensor) -> None:
        self._unsettled = [ref for ref in self._unsettled if ref() is not tensor]
        self._identities.forget(tensor)

    def forget_all(self) -> None:
        self._unsettled.clear()
        self._identities.clear()

    def next_version(self, ref: TensorRef, tensor: Tensor, producer: str) -> str:
        """Gives a known tensor its next value; opaque when there is no budget or nothing can be read."""
        if self._budget.omits_value(self._count):
            return opaque(type(tensor), "value_limit")
        try:
            facts = tensors.read(tensor)
        except tensors.Unreadable:
            return opaque(type(tensor), "unsupported_tensor")
        return self._record(ref, facts, producer, ref.logical + 1, f'"{ref.value}"')

    def settle(self) -> None:
        """Completes the values of the event before with what has been told since."""
        if not self._unsettled:
            return
        changed = []
        for ref in self._unsettled:
            tensor = ref()
            if tensor is None:
                counters = (_last_version(ref), ref.requires_grad)
            else:
                counters = (tensor._version, tensor.requires_grad) if ref.plain else tensors.counters(tensor)
            if counters != (ref.version, ref.requires_grad):
                ref.version, ref.requires_grad = counters
                changed.append(f'["{ref.value}",{to_json(ref.version)},{to_json(ref.requires_grad)}]')
        self._unsettled.clear()
        if changed:
            self._budget.write(f'{{"settle":[{",".join(changed)}]}}')

    def _first(self, tensor: Tensor, path: Any) -> str:
        try:
            facts = tensors.read(tensor)
        except tensors.Unreadable:
            return opaque(type(tensor), "unsupported_tensor")
        if self._budget.omits_value(self._count):
            return opaque(type(tensor), "value_limit")
        origin = f"{self._origin}{to_json(path)}}}" if self._origin_tail else self._origin
        return self._record(self._identities.add(tensor), facts, origin, 0, "null")

    def _record(self, ref: TensorRef, facts: tensors.Facts, producer: str, logical: int, previous: str) -> str:
        self._identities.place(ref, facts.storage)
        ref.value = f"v{self._count}"
        ref.text = f'{{"kind":"tensor","value":"{ref.value}"}}'
        ref.version, ref.logical, ref.requires_grad = facts.version, logical, facts.requires_grad
        ref.plain, ref.shape = facts.plain, facts.shape
        self._count += 1
        self._unsettled.append(ref)
        if facts.fake and not self._fake:
            self._fake = True
            self._budget.write('{"fake":true}')
        storage = f'"{ref.storage.name}"' if ref.storage is not None else "null"
        self._budget.write(
            f'{{"value":{{"id":"{ref.value}","object":"{ref.object}","storage":{storage},'
            f'"version":{"null" if facts.version is None else facts.version},"logicalVersion":{logical},'
            f'"previousVersion":{previous},"producer":{producer},{facts.text},'
            f'"requiresGrad":{"true" if facts.requires_grad else "false"}}}}}'
        )
        return ref.text


def _last_version(ref: TensorRef) -> "int | None":
    """The version of a tensor that was gone before its counter was complete: its base's, or not observed.

    The counter of a tensor that nothing wrote and that shares no memory was complete from the start.
    """
    base = ref.base() if ref.base is not None else None
    if base is not None:
        return tensors.counters(base)[0]
    shares = ref.storage is not None and (ref.storage.aliases or ref.storage() is not None)
    return None if ref.logical or shares else ref.version


def _is_current(ref: TensorRef, tensor: Tensor) -> bool:
    """Whether a plain tensor is as it was recorded. Setting ``.data`` moves it to other memory without a version."""
    return (
        tensor._version == ref.version
        and tensor.shape == ref.shape
        and (ref.storage is None or ref.storage() is tensors.storage(tensor))
    )
