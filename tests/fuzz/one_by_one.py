"""Texts one after the other: by the quick way, by the ordinary one."""

import random

from jittok.errors import EncodingFailed

RULES = [{}, {"add_special": True}, {"parse_special": True}, {"add_special": True, "parse_special": True}]


def texts_of(tok, count):
    """Words, numbers, blanks, special tokens, other scripts, of all lengths."""
    rng = random.Random(count)
    special = [tok.token_to_piece(token, special=True) for token in sorted(tok.special_ids)[:5]]
    parts = [b" the", b"word", b"\n", b"  ", b"123", b"'s", "é".encode(), "中".encode(), b"\xff", b"<", b"a" * 40]
    for _ in range(count):
        text = b"".join(rng.choice(parts + special) for _ in range(rng.choice([0, 1, 2, 5, 20, 300])))
        yield from (text, text.decode("utf-8", "ignore"), text.decode("ascii", "ignore"))


def ordinary(tok, text, rule):
    """The ids of a text by `Encoder.one`, or what it raises."""
    encoder, found = tok._rule(rule.get("add_special", False), rule.get("parse_special", False), "strict")
    raw = text.encode() if isinstance(text, str) else text
    try:
        return encoder.one(raw, found).tolist()
    except EncodingFailed as error:
        return str(error)


def asked(tok, text, rule):
    try:
        return tok.encode(text, **rule).tolist()
    except EncodingFailed as error:
        return str(error)


def builtin_of(tok, **rule):
    """The builtin for texts by a rule, made by first texts."""
    for _ in range(3):
        tok.encode("a text", **rule)
    return tok._builtins[rule.get("add_special", False), rule.get("parse_special", False), "strict"]
