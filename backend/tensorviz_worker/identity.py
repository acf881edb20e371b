"""Identities of tensors and storages through weak references and counters; never an address or an ``id()``.

An ``id()`` is only a dictionary key here, and counts for nothing unless the weak reference behind it still leads to the
same object: addresses are reused. The references have no callbacks, which would run for every tensor that dies: what is
dead is swept out now and then.
"""

import weakref
from typing import Any

_SWEEP_AFTER = 1024


class StorageRef(weakref.ref):
    """One storage. ``aliases`` are the observed tensors on it, dead ones among them, none of them kept alive."""

    __slots__ = ("aliases", "name")

    aliases: "list[TensorRef]"
    name: str  # encoded

    def others(self, tensor: "TensorRef | None" = None) -> "list[TensorRef]":
        """The living ones but ``tensor``."""
        return [ref for ref in self.aliases if ref is not tensor and ref() is not None]


class TensorRef(weakref.ref):
    """One tensor object and its current value. ``text`` is the encoded reference to that value."""

    __slots__ = ("base", "logical", "object", "plain", "requires_grad", "shape", "storage", "text", "value", "version")

    base: "weakref.ref[Any] | None"  # of a view that is being written: the tensor whose version counter it shares
    object: int
    storage: "StorageRef | None"
    value: str
    text: str
    version: "int | None"
    logical: int
    requires_grad: "bool | None"  # None when it was gone before autograd completed it
    shape: Any
    plain: bool  # an ordinary tensor, whose attributes can be read as they are and whose version is a number


class Identities:
    """The tensors and storages that were observed. Numbers are given once and never again."""

    def __init__(self) -> None:
        self.tensors: dict[int, TensorRef] = {}
        self._storages: dict[int, StorageRef] = {}
        self._objects = 0
        self._storage_count = 0
        self._sweep_at = _SWEEP_AFTER

    def find(self, tensor: Any) -> "TensorRef | None":
        ref = self.tensors.get(id(tensor))
        return ref if ref is not None and ref() is tensor else None

    def forget(self, tensor: Any) -> None:
        """Drops every reference to the tensor: when it is met again it is another object."""
        ref = self.find(tensor)
        if ref is not None:
            del self.tensors[id(tensor)]
            self.place(ref, None)

    def clear(self) -> None:
        self.tensors.clear()
        self._storages.clear()

    def add(self, tensor: Any, storage: Any) -> TensorRef:
        """A tensor that was not met before, and the storage object on which it lies, or None."""
        number = self._objects
        if number == self._sweep_at:
            self._sweep()
        self._objects = number + 1
        ref = self.tensors[id(tensor)] = TensorRef(tensor)
        ref.object, ref.base = number, None
        if storage is None:
            ref.storage = None
            return ref
        known = self._storages.get(id(storage))
        if known is None or known() is not storage:
            known = self._storages[id(storage)] = StorageRef(storage)
            known.name = f'"s{self._storage_count}"'
            known.aliases = [ref]
            self._storage_count += 1
        else:
            known.aliases.append(ref)
        ref.storage = known
        return ref

    def place(self, ref: TensorRef, storage: Any) -> None:
        """Notes on which storage (or None) a known tensor now lies."""
        found = None if storage is None else self._storages.get(id(storage))
        if storage is not None and (found is None or found() is not storage):
            found = self._add_storage(storage)
        if ref.storage is found:
            return
        if ref.storage is not None:
            ref.storage.aliases = ref.storage.others(ref)
        ref.storage = found
        if found is not None:
            found.aliases.append(ref)

    def _add_storage(self, storage: Any) -> StorageRef:
        number = self._storage_count
        self._storage_count = number + 1
        ref = self._storages[id(storage)] = StorageRef(storage)
        ref.name, ref.aliases = f'"s{number}"', []
        return ref

    def _sweep(self) -> None:
        for table in (self.tensors, self._storages):
            for key in [key for key, ref in table.items() if ref() is None]:
                del table[key]
        for storage in self._storages.values():
            storage.aliases = storage.others()
        self._sweep_at = self._objects + _SWEEP_AFTER
