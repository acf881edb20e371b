"""Identities of tensors and storages through weak references and counters; never an address or an ``id()``.

An ``id()`` is only a dictionary key here, and counts for nothing unless the weak reference behind it still leads to the
same object: addresses are reused.
"""

import weakref
from typing import Any


class StorageRef(weakref.ref):
    """One storage. ``aliases`` are the live observed tensors on it, by ``id()``, none of them kept alive."""

    __slots__ = ("aliases", "key", "name")

    aliases: "dict[int, TensorRef]"
    key: int
    name: str


class TensorRef(weakref.ref):
    """One tensor object and its current value. ``text`` is the encoded reference to that value."""

    __slots__ = (
        "base",
        "key",
        "logical",
        "object",
        "plain",
        "requires_grad",
        "shape",
        "storage",
        "text",
        "value",
        "version",
    )

    base: "weakref.ref[Any] | None"  # of a view that is being written: the tensor whose version counter it shares
    key: int
    object: str
    storage: "StorageRef | None"
    value: str
    text: str
    version: "int | None"
    logical: int
    requires_grad: bool
    shape: Any
    plain: bool  # an ordinary tensor, whose attributes can be read as they are and whose version is a number


class Identities:
    """The live tensors and storages that were observed. Numbers are given once and never again."""

    def __init__(self) -> None:
        self.tensors: dict[int, TensorRef] = {}
        self._storages: dict[int, StorageRef] = {}
        self._objects = 0
        self._storage_count = 0
        tensors, storages = self.tensors, self._storages

        def forget_tensor(ref: Any) -> None:
            if tensors.get(ref.key) is ref:
                del tensors[ref.key]
            if ref.storage is not None and ref.storage.aliases.get(ref.key) is ref:
                del ref.storage.aliases[ref.key]

        def forget_storage(ref: Any) -> None:
            if storages.get(ref.key) is ref:
                del storages[ref.key]

        self._forget_tensor, self._forget_storage = forget_tensor, forget_storage

    def find(self, tensor: Any) -> "TensorRef | None":
        ref = self.tensors.get(id(tensor))
        return ref if ref is not None and ref() is tensor else None

    def forget(self, tensor: Any) -> None:
        """Drops every reference to the tensor: when it is met again it is another object."""
        ref = self.find(tensor)
        if ref is not None:
            self._forget_tensor(ref)

    def clear(self) -> None:
        for ref in list(self.tensors.values()):
            self._forget_tensor(ref)
        self._storages.clear()

    def add(self, tensor: Any) -> TensorRef:
        ref = TensorRef(tensor, self._forget_tensor)
        ref.key = id(tensor)
        ref.object = f"t{self._objects}"
        ref.storage = None
        ref.base = None
        self._objects += 1
        self.tensors[ref.key] = ref
        return ref

    def place(self, ref: TensorRef, storage: Any) -> None:
        """Notes on which storage (or None) the tensor now lies."""
        found = None if storage is None else self._storage_of(storage)
        if ref.storage is not found:
            if ref.storage is not None:
                ref.storage.aliases.pop(ref.key, None)
            ref.storage = found
        if found is not None:
            found.aliases[ref.key] = ref

    def _storage_of(self, storage: Any) -> StorageRef:
        key = id(storage)
        ref = self._storages.get(key)
        if ref is not None and ref() is storage:
            return ref
        ref = StorageRef(storage, self._forget_storage)
        ref.key = key
        ref.name = f"s{self._storage_count}"
        ref.aliases = {}
        self._storage_count += 1
        self._storages[key] = ref
        return ref
