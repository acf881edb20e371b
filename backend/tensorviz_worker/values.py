"""Which tensors exist and at which version: gives each its value, and each use the value that it was at.

Facts that autograd and the version counter complete after the dispatch has returned are settled at the next event.
A path is JSON text here, without its brackets: ``"args",0,"items",1``.
"""

from collections.abc import Iterable

from torch import Tensor

from tensorviz_worker import tensors
from tensorviz_worker.arguments import opaque
from tensorviz_worker.budget import Budget
from tensorviz_worker.identity import Identities, TensorRef
from tensorviz_worker.journal import to_json
from tensorviz_worker.tensors import read

_FIRST_USE = '{"kind":"external","reason":"first_use"}'
_UNOBSERVED_WRITE = '{"kind":"external","reason":"unobserved_write"}'
_STATE = '{"kind":"state","state":null}'
_JSON = {True: "true", False: "false", None: "null"}


class Values:
    """``origin`` is the producer of the tensors that are first seen from now on, up to its path.

    Empty for tensors that nothing recorded made.
    """

    def __init__(self, budget: Budget) -> None:
        self.origin = ""
        self.unsettled: list[TensorRef] = []
        self._budget = budget
        self._pending = budget.pending
        self._max_values = budget.limits.values
        self._identities = Identities()
        self.live = self._identities.tensors
        self.find = self._identities.find
        self._add = self._identities.add
        self._count = 0
        self._fake = False

    def reference(self, tensor: Tensor, path: str) -> str:
        """The encoded reference to the tensor's value now, which is a new one if it is new or was changed unseen."""
        ref = self.live.get(id(tensor))
        if ref is None or ref() is not tensor:
            return self.first(tensor, f"{self.origin}{path}]}}") if self.origin else self._brought(tensor)
        if is_current(ref, tensor) if ref.plain else tensors.counters(tensor)[0] == ref.version:
            return ref.text
        if self._budget.stopped:
            return opaque(type(tensor), "value_limit")
        return self.next_version(ref, tensor, _UNOBSERVED_WRITE)

    def state_value(self, tensor: Tensor) -> "tuple[TensorRef | None, str | None]":
        """The value of a registered parameter or buffer, or the reason why it has none."""
        text = self.reference(tensor, "") if self.find(tensor) is not None else self.first(tensor, _STATE)
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
        self.unsettled = [ref for ref in self.unsettled if ref() is not tensor]
        self._identities.forget(tensor)

    def forget_all(self) -> None:
        self.unsettled.clear()
        self._identities.clear()

    def next_version(self, ref: TensorRef, tensor: Tensor, producer: str) -> str:
        """Gives a known tensor its next value; opaque when there is no budget or nothing can be read."""
        if self._is_spent():
            return opaque(type(tensor), "value_limit")
        try:
            reading = read(tensor)
        except tensors.Unreadable:
            return opaque(type(tensor), "unsupported_tensor")
        self._identities.place(ref, reading[1])
        return self._record(ref, reading, producer, ref.logical + 1, f'"{ref.value}"')

    def settle(self) -> None:
        """Completes the values of the event before with what has been told since."""
        changed = ""
        for ref in self.unsettled:
            tensor = ref()
            if tensor is not None and ref.plain:
                version, requires_grad = tensor._version, tensor.requires_grad
            elif tensor is not None:
                version, requires_grad = tensors.counters(tensor)
            else:
                version, requires_grad = _last_version(ref), ref.requires_grad or None
            if version != ref.version or requires_grad is not ref.requires_grad:
                ref.version, ref.requires_grad = version, requires_grad
                changed += f',["{ref.value}",{to_json(version)},{_JSON[requires_grad]}]'
        self.unsettled.clear()
        if changed:  # which takes no room in the capture
            self._pending.append(f'{{"settle":[{changed[1:]}]}}')

    def _brought(self, tensor: Tensor) -> str:
        """A tensor that nothing recorded made. Memory that torch cannot resize is somebody else's, as numpy's."""
        text = self.first(tensor, _FIRST_USE)
        ref = self.find(tensor)
        memory = ref.storage() if ref is not None and ref.storage is not None else None
        if memory is not None and not memory.resizable():
            self._budget.gap("escaped_storage")
        return text

    def first(self, tensor: Tensor, producer: str) -> str:
        """The encoded reference to a tensor that was not met before."""
        try:
            reading = read(tensor)
        except tensors.Unreadable:
            return opaque(type(tensor), "unsupported_tensor")
        if self._is_spent():
            return opaque(type(tensor), "value_limit")
        return self._record(self._add(tensor, reading[1]), reading, producer, 0, "null")

    def _is_spent(self) -> bool:
        """Whether there is no budget for one more value, which is counted as left out then."""
        budget = self._budget
        if self._count < self._max_values and budget.left >= budget.floor and not budget.stopped:
            return False
        budget.omit_value()
        return True

    def _record(self, ref: TensorRef, reading: tensors.Reading, producer: str, logical: int, previous: str) -> str:
        facts, _, version, requires_grad, fake, ref.plain, ref.shape = reading
        storage, number = ref.storage, self._count
        self._count = number + 1
        ref.value = name = f"v{number}"
        ref.text = text = f'{{"kind":"tensor","value":"{name}"}}'
        ref.version, ref.logical, ref.requires_grad = version, logical, requires_grad
        self.unsettled.append(ref)
        if fake:
            self._tell_fake()
        line = (
            f'{{"value":{{"id":"{name}","object":"t{ref.object}",'
            f'"storage":{storage.name if storage is not None else "null"},'
            f'"version":{version if version is not None else "null"},"logicalVersion":{logical},'
            f'"previousVersion":{previous},"producer":{producer},{facts},"requiresGrad":{_JSON[requires_grad]}}}}}'
        )
        self._budget.left -= len(line)
        self._pending.append(line)
        return text

    def _tell_fake(self) -> None:
        if not self._fake:
            self._fake = True
            self._budget.note('{"fake":true}')


def is_current(ref: TensorRef, tensor: Tensor) -> bool:
    """Whether a plain tensor is as it was recorded. Setting ``.data`` moves it to other memory without a version."""
    return (
        tensor._version == ref.version
        and tensor.shape == ref.shape
        and (ref.storage is None or ref.storage() is tensors.storage(tensor))
    )


def _last_version(ref: TensorRef) -> "int | None":
    """The version of a tensor that was gone before its counter was complete: its base's, or not observed.

    The counter of a tensor that nothing wrote and that shares no memory was complete from the start.
    """
    base = ref.base() if ref.base is not None else None
    if base is not None:
        return tensors.counters(base)[0]
    shares = ref.storage is not None and (ref.storage() is not None or ref.storage.others())
    return None if ref.logical or shares else ref.version
