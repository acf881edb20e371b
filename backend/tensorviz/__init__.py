"""tensorviz shows what a PyTorch model really executed.

``tensorviz.capture(model, *args, **kwargs)`` and ``with tensorviz.record(model) as run:`` record in this process and
need torch; the host and the command line never import it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorviz.edges.inprocess import Recording, capture, record

__version__ = "0.1.0"
__all__ = ["Recording", "__version__", "capture", "record"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tensorviz' has no attribute {name!r}")
    from tensorviz.edges import inprocess

    return getattr(inprocess, name)
