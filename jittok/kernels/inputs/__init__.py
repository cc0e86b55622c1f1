"""What users pass: texts in any container become `Documents`, bytes in flat arrays."""

from typing import TYPE_CHECKING, Any

from jittok.kernels.inputs.texts import (
    PADDING,
    Documents,
    Errors,
    OneText,
    check_errors,
    check_options,
    to_bytes,
    to_ids,
)

if TYPE_CHECKING:
    from jittok.kernels.inputs.containers import documents, reads_wide
    from jittok.kernels.inputs.texts import Texts

__all__ = [
    "PADDING",
    "Documents",
    "Errors",
    "OneText",
    "Texts",
    "check_errors",
    "check_options",
    "documents",
    "reads_wide",
    "to_bytes",
    "to_ids",
]


def __getattr__(name: str) -> Any:
    """Containers are imported with the first batch: a load and a single text need none."""
    if name in ("documents", "reads_wide"):
        from jittok.kernels.inputs import containers

        return getattr(containers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
