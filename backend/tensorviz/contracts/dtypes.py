"""Classes of dtypes, by the names that captures carry."""

import re

_FLOATING = re.compile(r"torch\.(float|bfloat|complex)")
_INTEGRAL = re.compile(r"torch\.(u?int\d+$|bool$)")
_INDEX = ("torch.int32", "torch.int64")


def is_of_class(dtype: str, wanted: str) -> bool | None:
    """Whether a dtype is ``floating`` (or complex), ``integral`` (or bool) or an ``index``; None for foreign names."""
    floating, integral = _FLOATING.match(dtype), _INTEGRAL.match(dtype)
    if not floating and not integral:
        return None
    if wanted == "floating":
        return floating is not None
    return integral is not None and (wanted == "integral" or dtype in _INDEX)
