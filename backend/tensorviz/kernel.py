"""Which confinement mechanisms this machine offers. Only asked for, never used here."""

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PR_GET_SECCOMP = 21
_PR_GET_NO_NEW_PRIVS = 39
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1
_ENOUGH_LANDLOCK = 3
_PROC = Path("/proc/sys")


@dataclass(frozen=True)
class Mechanism:
    name: str
    offered: bool
    detail: str


def mechanisms() -> Iterator[Mechanism]:
    if not sys.platform.startswith("linux"):
        yield Mechanism("sandbox", False, f"not known yet on {sys.platform}")
        return
    for name, ask in _LINUX.items():
        try:
            offered, detail = ask()
        except (OSError, ValueError, AttributeError) as error:
            offered, detail = False, f"cannot be asked: {error}"
        yield Mechanism(name, offered, detail)


def _landlock() -> tuple[bool, str]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_VERSION))
    if version < 0:
        return False, "not in this kernel, or switched off"
    enough = version >= _ENOUGH_LANDLOCK
    return enough, f"ABI {version}" + ("" if enough else f"; {_ENOUGH_LANDLOCK} is needed, or truncate() escapes")


def _seccomp() -> tuple[bool, str]:
    actions = (_PROC / "kernel/seccomp/actions_avail").read_text().split()
    return "errno" in actions and ctypes.CDLL(None).prctl(_PR_GET_SECCOMP) >= 0, ", ".join(actions)


def _no_new_privs() -> tuple[bool, str]:
    state = ctypes.CDLL(None).prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
    return state >= 0, "set already" if state == 1 else "can be set"


def _rlimits() -> tuple[bool, str]:
    found = importlib.util.find_spec("resource") is not None
    return found, "DATA, FSIZE, CPU, CORE" if found else "this Python has no resource module"


def _user_namespaces() -> tuple[bool, str]:
    """Not used: what counts is that programs inside must not make them."""
    most = int((_PROC / "user/max_user_namespaces").read_text())
    if most == 0:
        return False, "max_user_namespaces is 0"
    for name in ("kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns"):
        path = _PROC / name
        if path.exists() and (path.read_text().strip() == "0") is name.endswith("clone"):
            return False, f"restricted by {path}"
    return True, f"up to {most}"


_LINUX: dict[str, Callable[[], tuple[bool, str]]] = {
    "landlock": _landlock,
    "seccomp": _seccomp,
    "no_new_privs": _no_new_privs,
    "rlimits": _rlimits,
    "user_namespaces": _user_namespaces,
}
