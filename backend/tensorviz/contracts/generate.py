"""``python -m tensorviz.contracts.generate`` prints every committed schema as one JSON object, file name -> schema.

JSON Schema 2020-12 in the form that Ajv's strict mode takes: no titles, discriminators without a mapping, sorted keys.
``packages/contracts/scripts/generate.mjs`` writes the files and makes the TypeScript from them.
"""

import json
import sys
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from tensorviz.contracts import attempt, capture, messages, problem

DOCUMENTS: dict[str, Any] = {
    "attempt": attempt.RunAttempt,
    "attempt-page": messages.AttemptPage,
    "capture": capture.CaptureSnapshot,
    "capture-page": messages.CapturePage,
    "event": messages.HostEvent,
    "host": messages.HostInfo,
    "plan": attempt.ExecutionPlan,
    "problem": problem.Problem,
    "request": attempt.CaptureRequest,
}


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        made = super().tagged_union_schema(schema)
        if "discriminator" in made:
            made["discriminator"] = {"propertyName": made["discriminator"]["propertyName"]}
            made["type"] = "object"
        return made

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """A field that may be left out has no default that could be written down."""
        made = super().default_schema(schema)
        if made.get("default", ...) is None and {"type": "null"} not in made.get("anyOf", ()):
            del made["default"]
        return made


def schema(document: Any) -> dict[str, Any]:
    """The schema of one document, its own definition among ``$defs``."""
    made = TypeAdapter(document).json_schema(schema_generator=_Generator, ref_template="#/$defs/{model}")
    definitions = made.pop("$defs", {})
    if "$ref" not in made:
        name = made.pop("title", None) or document.__name__
        definitions[name] = made
        made = {"$ref": f"#/$defs/{name}"}
    for definition in definitions.values():
        definition.pop("title", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "$defs": definitions}


def schemas() -> dict[str, dict[str, Any]]:
    """Every committed schema by its file name in ``schemas/``."""
    return {f"{name}.json": schema(document) for name, document in DOCUMENTS.items()}


if __name__ == "__main__":
    json.dump(schemas(), sys.stdout, indent=2, sort_keys=True)
