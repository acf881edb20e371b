"""Check that the lock files pin everything, name no place to get it from, and hold free licences only."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[A-Za-z0-9.!]+)")
EXACT = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?")
LICENCES = re.compile(
    r"0BSD|Apache-2\.0|Artistic-2\.0|BlueOak-1\.0\.0|BSD-2-Clause|BSD-3-Clause|CC0-1\.0|CC-BY-4\.0|ISC|MIT|MIT-0"
    r"|MPL-2\.0|PSF-2\.0|Python-2\.0|Unlicense"
)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: str, names: list[str]) -> Iterator[str]:
    """Adds the names that the file pins, and tells what is wrong with it."""
    for number, line in enumerate((ROOT / file).read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        pin = PIN.fullmatch(line)
        if pin is None:
            yield f"{file}:{number}: {line!r} is not NAME==VERSION"
        else:
            names.append(normal(pin["name"]))
    if names != sorted(set(names)):
        yield f"{file}: not in alphabetical order, or a name twice"


def python_problems() -> Iterator[str]:
    names: list[str] = []
    yield from pins("constraints.txt", names)
    yield from pins("tools/bench/constraints.txt", [])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wanted in [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]:
        name = normal(re.split(r"[\[<>=!~; ]", wanted)[0])
        if name not in names:
            yield f"constraints.txt: {name}, which pyproject.toml asks for, is not pinned"


def node_problems() -> Iterator[str]:
    packages: dict[str, dict[str, Any]] = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    for place, package in packages.items():
        if "://" in package.get("resolved", ""):
            yield f"package-lock.json: {place} names a download address: run `npm install`, which heeds .npmrc"
        if "node_modules/" not in place:
            yield from (f"{place or '.'}/package.json: {problem}" for problem in unpinned(package))
            continue
        if package.get("link"):
            continue
        if "integrity" not in package and not package.get("inBundle"):
            yield f"package-lock.json: {place} has no integrity hash"
        terms = re.split(r" OR | AND ", package.get("license", "none").strip("()"))
        if not any(LICENCES.fullmatch(term) for term in terms):
            yield f"package-lock.json: {place} has licence {package.get('license')!r}, which nobody has allowed"


def unpinned(package: dict[str, Any]) -> Iterator[str]:
    for kind in ("dependencies", "devDependencies"):
        for name, version in package.get(kind, {}).items():
            if not EXACT.fullmatch(version):
                yield f"{name} is {version!r}, and must be one exact version"


def main() -> int:
    problems = [*python_problems(), *node_problems()]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"lock files: {len(problems)} problems" if problems else "lock files: as they should be")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
