"""Which special tokens begin and end texts and so on, by their texts."""

from __future__ import annotations

from collections.abc import Mapping

from jittok.errors import CorpusError
from jittok.train.bpe import Learned

END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<|im_end|>")
BEGIN_NAMES = ("<|begin_of_text|>", "<s>", "<bos>", "<|bos|>", *END_NAMES)
ROLES = ("bos", "eos", "pad", "unk")


def roles_of(made: Learned, given: Mapping[str, str | None]) -> dict[str, int]:
    """Ids of the tokens that begin and end texts and so on: those given by their texts, or known by their names."""
    ids = {text: token for token, text in enumerate(made.special)}
    roles = {}
    for role in ROLES:
        text = given.get(role)
        if text is None:
            names = {"bos": BEGIN_NAMES, "eos": END_NAMES}.get(role, ())
            text = next((name for name in names if name in ids), None)
        elif text not in ids:
            known = ", ".join(made.special) or "none is given (--special)"
            raise CorpusError(f"--{role}", text, f"a special token: {known}")
        if text is not None:
            roles[role] = ids[text]
    return roles
