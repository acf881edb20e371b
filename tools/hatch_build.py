"""Build hook: a wheel or sdist carries the built viewer and the schemas, or it is not built at all."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "backend/tensorviz/page/index.html"


class BuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if not Path(self.root, PAGE).is_file():
            raise SystemExit(
                f"{PAGE} is missing: the viewer has not been built, and a package without it shows nothing.\n"
                "Run `make wheel`, which builds it first (or `npm ci && npm run build`)."
            )
        if self.target_name == "wheel":
            build_data["force_include"]["schemas"] = "tensorviz/schemas"
