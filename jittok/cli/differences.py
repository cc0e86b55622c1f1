"""Where llama.cpp's ids, which are jittok's, are known to part from those of the model's own tokenizer.

"Measured" means documents that were tokenized with both; the rest is read from llama.cpp's code and its issue tracker.
"""

from __future__ import annotations

from jittok.vocab import Vocab

USER_DEFINED = 16

MARKS = (
    "combining marks do not belong to words here (llama.cpp's pattern lacks \\p{M}): Thai, Devanagari, Bengali, Tamil, "
    "Arabic and other scripts with marks get other ids. Measured over multilingual text: "
)
MEASURED_MARKS = {
    "gpt-4o": "2.5 % more tokens, every such document differs; English and code are equal",
    "tekken": "1.9 % more tokens, every such document differs; English and code are equal",
}
MARKLESS = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2", "tekken"}
"""tokenizer.ggml.pre strings whose original patterns put marks into words, and llama.cpp's do not."""
CASED = MARKLESS
"""Original patterns that tell upper from lower case in all scripts; llama.cpp's know ASCII only."""
EQUAL = {"llama-bpe", "llama3", "llama-v3", "qwen2", "deepseek-v3"}
"""No difference in the documents measured."""


def known_differences(vocab: Vocab) -> list[str]:
    """One sentence for each known difference of this kind of vocabulary."""
    by_type = {"bpe": _bpe, "spm": _spm, "ugm": _ugm, "wpm": _wpm}
    return by_type[vocab.type](vocab) if vocab.type in by_type else []


def _bpe(vocab: Vocab) -> list[str]:
    notes, pre = [], vocab.pre or ""
    if pre in ("", "default") and vocab.model == "gpt2":
        notes.append(
            f"tokenizer.ggml.pre is {'absent' if not pre else 'default'}: llama.cpp falls back to a pattern that few "
            "models were trained with, so ids are probably wrong; convert the model again with a current converter"
        )
    if pre in MARKLESS:
        notes.append(MARKS + MEASURED_MARKS.get(pre, "not done for this one"))
    if pre in CASED:
        notes.append("words are not split where the case changes, except between ASCII letters")
    if pre == "kimi-k2":
        notes.append("words are never split where the case changes, and marks are not part of words")
    if pre in EQUAL:
        notes.append("no difference was found in the documents measured (English, code, 36 languages)")
    if pre == "deepseek-coder":
        notes.append("added tokens that are not special (such as the letter ü) are not cut out of the text first")
    if _user_defined(vocab):
        notes.append(
            "user-defined tokens are cut out of the text longest first; the model's own tokenizer takes the leftmost"
        )
    notes.append(
        "text is never normalized: where the model's own tokenizer applies NFC, decomposed text gets other ids"
    )
    return notes


def _spm(vocab: Vocab) -> list[str]:
    notes = []
    if vocab.add_space_prefix:
        notes.append(
            "a space is put in front of the text and in front of text behind every special token, "
            "where the model's own tokenizer does so at the start alone"
        )
    notes.append(
        "text is not normalized (no NFKC, no squeezing of spaces), whatever the model file of sentencepiece says"
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
        "the ## form of word parts is lost in conversion: ids are the same, the texts of tokens are not",
        "CLS and SEP always stand around the text with add_special, whatever the file's flags say",
    ]


def _user_defined(vocab: Vocab) -> bool:
    return bool((vocab.attributes[vocab.special_tokens] & USER_DEFINED).any())
