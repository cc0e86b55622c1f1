"""Known differences between llama.cpp's ids, which are jittok's, and those of the model's own tokenizer.

"Measured" means on documents tokenized with both; the rest is from llama.cpp's code and issue tracker. Notes on a
single pre-tokenizer are in its record.
"""

from __future__ import annotations

from jittok.kernels.pretokenize.records import notes as notes_of
from jittok.vocab import Vocab

USER_DEFINED = 16
READ_OTHERWISE = (
    "decomposed Hangul, vowel signs and other marks, words of more than 100 characters and characters newer than "
    "Unicode 8 are handled differently (measured with BERT: 7 of 72 multilingual documents, English and code are equal)"
)


def known_differences(vocab: Vocab) -> list[str]:
    """One sentence for each known difference of this kind of vocabulary."""
    by_type = {"bpe": _bpe, "spm": _spm, "ugm": _ugm, "wpm": _wpm, "rwkv": _rwkv}
    return by_type[vocab.type](vocab) if vocab.type in by_type else []


def _bpe(vocab: Vocab) -> list[str]:
    notes, pre = [], vocab.pre or ""
    if pre in ("", "default") and vocab.model == "gpt2":
        notes.append(
            f"tokenizer.ggml.pre is {'absent' if not pre else 'default'}: llama.cpp falls back to a pattern that few "
            "models were trained with, so ids are probably wrong; convert the model again with a current converter"
        )
    notes += notes_of(pre)
    if _user_defined(vocab):
        notes.append(
            "user-defined tokens are matched longest first; the model's own tokenizer matches the leftmost first"
        )
    notes.append(
        "text is never normalized: where the model's own tokenizer applies NFC, as Qwen's does, decomposed text gets "
        "other ids (measured with Qwen 3: 2 of 72 multilingual documents, English and code are equal)"
    )
    notes.append(
        "characters that are newer than llama.cpp's tables of Unicode (such as U+10D40), and U+017F after an "
        "apostrophe, are split differently than by Unicode 16.0"
    )
    return notes


def _spm(vocab: Vocab) -> list[str]:
    notes = []
    if vocab.add_space_prefix:
        notes.append(
            "a space is prepended to the text and to the text after every special token, "
            "while the model's own tokenizer does so only at the start"
        )
    notes.append("text is not normalized (no NFKC, no merging of spaces), even if the sentencepiece model specifies it")
    notes.append(
        "tokens that the model's own file adds without calling them special (runs of spaces, </s>), and control tokens "
        "that a converter made user-defined, may be matched by only one of the two (ChatGLM3's `sop` within "
        '"philosophy"; measured: 3 of 25 English documents)'
    )
    return notes


def _ugm(vocab: Vocab) -> list[str]:
    notes = ["pieces of equal score may be chosen differently (measured: 4 of 150 code files with T5, prose is equal)"]
    firsts = {
        vocab.tokens[i][:1]
        for i in vocab.special_tokens.tolist()
        if vocab.attributes[i] & USER_DEFINED and vocab.tokens[i][:1] >= b"\x80"
    }
    if firsts:
        shown = ", ".join(sorted(f"{byte[0]:02X}" for byte in firsts))
        notes.append(
            f"user-defined tokens begin with the bytes {shown}: others that begin with one of them (quotation "
            "marks, dashes and the ellipsis begin with E2) become the unknown token (mT5: 53 of 150 English documents)"
        )
    return notes


def _wpm(vocab: Vocab) -> list[str]:
    del vocab
    return [
        "the ## prefix of word parts is lost in conversion: ids are the same, token texts are not",
        "add_special always adds CLS and SEP, regardless of the file's flags",
        READ_OTHERWISE,
    ]


def _rwkv(vocab: Vocab) -> list[str]:
    if vocab.tokens[:1] != [b"<s>"]:
        return []
    return ["`<s>`, id 0, is matched in the text; the model's own list has no such token"]


def _user_defined(vocab: Vocab) -> bool:
    return bool((vocab.attributes[vocab.special_tokens] & USER_DEFINED).any())
