"""Places in the code: their ranges, the way to each, and what a binding to the saved file needs."""

from collections.abc import Iterator

from tensorviz.contracts.capture import Location
from tensorviz.contracts.relations.lookup import Capture, Fault, Rule

_MAX_FRAMES = 64


def ranges_run_forward(capture: Capture) -> Iterator[Fault]:
    for index, location in enumerate(capture.snapshot.locations):
        end = location.endLine if location.endLine is not None else location.line
        columns = (location.column, location.endColumn)
        backwards = end == location.line and None not in columns and columns[0] > columns[1]  # type: ignore[operator]
        if end < location.line or backwards:
            yield Fault(("locations", index), "location", "ends before it begins")


def ways_lead_outwards(capture: Capture) -> Iterator[Fault]:
    """A caller is told earlier, so that no way is a circle; and every way is short."""
    frames: list[int] = []
    for index, location in enumerate(capture.snapshot.locations):
        path, caller = ("locations", index, "caller"), -1 if location.caller is None else int(location.caller[1:])
        if caller >= index:
            yield Fault(path, "location", f"{location.caller} is not told earlier")
        frames.append(frames[caller] + 1 if 0 <= caller < index else 1)
        if frames[index] > _MAX_FRAMES:
            yield Fault(path, "location", f"more than {_MAX_FRAMES} frames")


def only_outermost_frames_are_cut(capture: Capture) -> Iterator[Fault]:
    for index, location in enumerate(capture.snapshot.locations):
        if location.callersOmitted and location.caller is not None:
            yield Fault(("locations", index, "callersOmitted"), "location", "the caller is told")


def bindings_have_their_evidence(capture: Capture) -> Iterator[Fault]:
    for index, location in enumerate(capture.snapshot.locations):
        missing = _missing(capture, location)
        if missing is not None:
            yield Fault(("locations", index, "binding"), "location", f"{location.binding} needs {missing}")


def _missing(capture: Capture, location: Location) -> str | None:
    """What a binding claims without having it."""
    file = capture.at(location.file)
    if location.binding == "unmapped":
        return None
    if file.root != "workspace":
        return "a file of the workspace"
    if file.digest is None:
        return "the digest of the saved file"
    if location.binding == "exact" and None in (location.endLine, location.column, location.endColumn):
        return "a whole range"
    if location.binding == "candidate" and location.column is not None:
        return "a line alone"
    return None


RULES: tuple[Rule, ...] = (
    ranges_run_forward,
    ways_lead_outwards,
    only_outermost_frames_are_cut,
    bindings_have_their_evidence,
)
