"""BPE ("gpt2", "gemma4"): words, then merges of neighbours by rank, then single bytes for what is no token."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.errors import EncodingFailed
from jittok.pretokenize.definition import PreType, pre_type, split
from jittok.reference.mapped import Mapped, Token, escape_spaces
from jittok.reference.merging import Observe, Symbols, merge_pairs
from jittok.unicode.characters import NEWLINE, SPACE_MARK_BYTES
from jittok.unicode.tables import ENCODED_BYTE, LAST_CODE_POINT, decode, sequence_length, utf8
from jittok.vocab import Vocab


def session(vocab: Vocab, fragment: Mapped) -> Iterator[Token]:
    """Tokens of the text between two special tokens. A byte without a token disappears.

    EncodingFailed: a code point above U+10FFFF, a space inside a word that is not written in the alphabet of bytes.
    Source: llama.cpp, `llm_tokenizer_bpe_session`.
    """
    pre = pre_type(vocab.pre_type)
    for word in words(vocab, fragment):
        text = bytes(word.text)
        at = 0
        for symbol in [text] if is_whole(vocab, text) else merge(vocab, checked(word)).pieces():
            token = vocab.ids.get(symbol)
            if token is not None:
                yield word.token(token, at, at + len(symbol))
            else:
                for k, byte in enumerate(symbol, at):
                    token = byte_token(vocab, pre, byte)
                    if token is not None:
                        yield word.token(token, k, k + 1)
            at += len(symbol)


def words(vocab: Vocab, fragment: Mapped) -> list[Mapped]:
    """The words that merging sees: decoded, cut by the patterns, in the alphabet of bytes if the pre type has it."""
    pre = pre_type(vocab.pre_type)
    source = written(vocab, fragment)
    text = Mapped()
    for c, i, j in decode(source.text, vocab.shortest_utf8):
        if c > LAST_CODE_POINT:
            raise EncodingFailed(0, source.starts[i], f"U+{c:X}", "no code point above U+10FFFF")
        text.put(utf8(c), source, i, j)
    cut = split(bytes(text.text), pre)
    if pre.byte_encode:
        encoded = Mapped()
        for k, byte in enumerate(text.text):
            encoded.add(ENCODED_BYTE[byte], text.starts[k], text.stops[k])
        text = encoded
    found, at = [], 0
    for word in cut:
        found.append(text.part(at, at + len(word)))
        at += len(word)
    return found


def written(vocab: Vocab, fragment: Mapped) -> Mapped:
    """The text with its spaces as the vocabulary writes them."""
    source = escaped(vocab, fragment)
    return begun_lines(source) if pre_type(vocab.pre_type).begin_lines else source


def escaped(vocab: Vocab, fragment: Mapped) -> Mapped:
    """The text with U+2581 for spaces if the vocabulary wants that: it is done before any session looks at it."""
    return escape_spaces(fragment) if vocab.escape_whitespaces else fragment


def begun_lines(source: Mapped) -> Mapped:
    """U+2581 in front of each run of bytes that are no newlines, unless it begins so: it stands for no text."""
    out, begins = Mapped(), True
    for k, byte in enumerate(source.text):
        if begins and byte != NEWLINE and bytes(source.text[k : k + len(SPACE_MARK_BYTES)]) != SPACE_MARK_BYTES:
            out.add(SPACE_MARK_BYTES, source.starts[k], source.starts[k])
        begins = byte == NEWLINE
        out.put(bytes([byte]), source, k, k + 1)
    return out


def is_whole(vocab: Vocab, word: bytes) -> bool:
    """Whether a word is taken as the token that it is, without merging."""
    lines = pre_type(vocab.pre_type).newlines_whole and not word.strip(b"\n")
    return word in vocab.ids and (vocab.ignore_merges or lines)


def checked(word: Mapped) -> bytes:
    """The bytes of a word to be merged. llama.cpp asserts that no symbol of a pair holds a space."""
    text = bytes(word.text)
    space = text.find(b" ")
    if space >= 0 and len(text) > sequence_length(text[0]):
        expected = "no space inside a word (this vocabulary has no rule for it)"
        raise EncodingFailed(0, word.starts[space], text[space : space + 8], expected)
    return text


def merge(vocab: Vocab, word: bytes, observe: Observe | None = None) -> Symbols:
    """The symbols when no merge applies any more: lowest rank first, then the leftmost."""
    ranks = vocab.merges
    return merge_pairs(word, lambda left, right: ranks.get((left, right)), observe)


def byte_token(vocab: Vocab, pre: PreType, byte: int) -> int | None:
    """The token of one byte of a symbol that is none: just the byte, or `<0xHH>` without the alphabet of bytes."""
    return vocab.ids.get(bytes([byte]) if pre.byte_encode else b"<0x%02X>" % byte)
