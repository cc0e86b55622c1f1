"""Characters that many rooms ask for, each under one name.

What a table calls SPACE, BLANK or MARK is a class of characters.
"""

NEWLINE = 0x0A
"""A newline, as a byte and as a code point."""
CARRIAGE_RETURN = 0x0D
"""A carriage return, as a byte and as a code point."""
SPACE_BYTE = 0x20
"""A space, as a byte and as a code point."""
SPACE_MARK = "\u2581"
"""U+2581, which stands for a space in the tokens of SPM, Unigram, WordPiece and some BPE vocabularies."""
SPACE_MARK_CODE = ord(SPACE_MARK)
SPACE_MARK_BYTES = SPACE_MARK.encode()
SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2 = SPACE_MARK_BYTES
"""The three bytes of it in UTF-8."""
KMER = 6
"""HybridDNA: letters of a token between `<dna>` and `</dna>`,"""
KMER_MARK = "\ue000".encode()
"""and what is after them in the text that such a token is found by."""
