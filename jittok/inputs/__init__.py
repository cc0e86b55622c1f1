"""What users pass: texts in any container become `Documents`, bytes in flat arrays."""

from jittok.inputs.containers import documents, reads_wide
from jittok.inputs.texts import PADDING, Documents, OneText, check_errors, to_bytes, to_ids

__all__ = ["PADDING", "Documents", "OneText", "check_errors", "documents", "reads_wide", "to_bytes", "to_ids"]
