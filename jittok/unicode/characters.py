"""Characters that many rooms ask for, each under one name.

What a table calls SPACE or BLANK is a class of characters.
"""

SPACE_BYTE = 0x20
"""A space, as a byte and as a code point."""
SPACE_MARK_CODE = 0x2581
"""The code point of U+2581, which tokens have for a space."""
