"""What users pass: texts in any container become `Documents`, bytes in flat arrays."""

from jittok.inputs.containers import documents, reads_wide
from jittok.inputs.texts import PADDING, Documents, OneText, check_errors, check_options, to_bytes, to_ids

__all__ = [
    "PADDING",
    "Documents",
    "OneText",
    "check_errors",
    "check_options",
    "documents",
    "reads_wide",
    "to_bytes",
    "to_ids",
]
