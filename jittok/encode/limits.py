"""From how many bytes on a text goes another way, in one table. No limit changes an id."""

# one text
FALLBACK_TEXT = 1 << 13
"""Up to this the Python reference encodes while kernels are not compiled: about the tenth of a second."""
LONGEST_HELD = 1 << 11
"""Up to this a single text is copied to the workspace, where kernels can read past its end; one more copy costs less
than laying out other addresses."""
LONGEST_WITH_GIL = 1 << 12
"""Up to this the GIL is held, as releasing it would take longer; only such texts are rewritten in a frame, and given to
a builtin."""
LONGEST_QUICK = 1 << 16
"""Up to this a frame encodes a text that kernels read in place."""
VALIDATED_AT_ONCE = 1 << 16
"""Below this Python validates a text that is not ASCII as a whole, from there on VALIDATED_PART bytes at a time."""
VALIDATED_PART = 1 << 17
LONG_TEXT = 1 << 20
"""From this on it is worth asking whether threads share a text."""
LEAST_BYTES = 4 << 20
"""From this on threads share a document, in parts of"""
PART_BYTES = 2 << 20
"""this many bytes: the ids of a part are still in the cache when they are copied."""

# a few texts, and many
MOST_TEXTS, MOST_CHARACTERS = 64, 1 << 15
"""Up to so many texts, of so many characters together, a batch goes text by text: less than half a millisecond."""
STRETCH_BYTES = 4 << 20
"""A stretch of documents has up to about this many bytes, so that its arrays can be kept,"""
STRETCH_MIN = 1 << 16
"""and no fewer than this where there are more, so that handing it out costs nothing."""
EXTRA_STRETCH_BYTES = 1 << 18
"""Bytes of a stretch with extra results, which take much more memory than its ids."""
LEAST_WIDE_BYTES = 1 << 17
"""From this on `str` that are not ASCII are read by kernels, faster than by `str.encode` with all that is around it."""
BYTES_PER_COPY = 1 << 20
"""Bytes that are copied at once from memory that others may write to."""
MUCH_TEXT = 1 << 18
"""From this on the compiled arrays get the layout for much text; and nothing else is kept beside the result of a
step."""

# texts that steps prepare: what becomes of one may be many times as long
MOST_PREPARED_BYTES = 1 << 22
"""Up to this the result of a step on a short text has a buffer in a frame."""
GROWN_TEXT, MOST_GROWTH = 1 << 20, 2
"""From this on a text that has grown more than MOST_GROWTH times is divided where its splitter always cuts, in parts
of"""
GROWN_PART = 1 << 18
"""this many bytes, or a few more."""
WINDOWED_TEXT, WINDOW = 1 << 20, 1 << 16
"""From this on sentencepiece's BPE encodes a text in windows, of this many bytes."""
WINDOWED_CUT_TEXT, CUT_WINDOW = 1 << 18, 1 << 17
"""The same of texts that user-defined pieces cut: there is more to do for each window."""

# spans
LEAST_FRAGMENTS = 1 << 17
"""From so many fragments on a document is aligned in chunks of"""
FRAGMENTS_PER_STEP = 1 << 15
"""so many: 28 bytes a fragment would be more than the result."""
