"""The vocabulary types of llama.cpp, one class each: all that is known of a type without its kernels.

A class names the values of `tokenizer.ggml.model` that lead to its type, with their default special ids, and the
modules that encode, judge and trace it. It holds the rules for reading a file, the steps from text to ids, what tokens
print, the ids around a text, the newline and the rules for spans. Other packages ask the class and never compare names
of types.

To add a type, write a class here and `register` it, add `jittok/kernels/models/<type>` with its arrays and kernels (see
`jittok.kernels.models.Model`), and `jittok/reference/models/<type>.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import models, steps
from jittok.common.pipeline.models import NO_TOKEN
from jittok.common.pipeline.pipeline import read_only_array
from jittok.errors import EncodingFailed
from jittok.kernels.pretokenize.records import PreType, pre_type

if TYPE_CHECKING:
    from jittok.vocab.vocab import Vocab

USER_BIT = 16
"""llama.cpp's attribute bit of user-defined tokens."""
CHUNK = 5
"""Bytes per token of llama.cpp's type for tests."""
DNA = b"<dna>", b"</dna>", b"<oov>"
READ_OTHERWISE = (
    "decomposed Hangul, vowel signs and other marks, words of more than 100 characters and characters newer than "
    "Unicode 8 are handled differently (measured with BERT: 7 of 72 multilingual documents, English and code are equal)"
)
"""A difference of WordPiece."""
AroundRule = tuple[bool, str, int]
"""(whether an id is added to a text, the name of its metadata key, the id)."""


class DefaultIds(NamedTuple):
    """The special ids of a model where the file has no keys for them."""

    bos: int = NO_TOKEN
    eos: int = NO_TOKEN
    unk: int = NO_TOKEN
    sep: int = NO_TOKEN
    pad: int = NO_TOKEN
    mask: int = NO_TOKEN


class AlignmentRules(NamedTuple):
    """How `jittok.align` finds the spans of this type's ids."""

    lengths: str  # where token lengths come from: "symbols", "scored", "unescaped", "texts", "texts only", "keys only"
    walk: str  # for fragments that lengths do not decide: "rewritten", "words", "unigram", "literal"
    rewriting: str = ""  # a kind of rewriting that "rewritten" undoes, by its name in `jittok.align.by_lengths`
    prefix: bool = False  # the encoder may put a space before a text
    well_formed: bool = False  # the encoder replaces invalid UTF-8
    drops_mark: bool = False  # the encoder drops a byte order mark at the start
    unknown: int = 0  # bytes that id -1 covers


class VocabType:
    """The defaults, which most types share. One object of each subclass is registered."""

    name = ""
    """`Vocab.type`."""
    gguf_models: Mapping[str, DefaultIds] = {}
    """The values of `tokenizer.ggml.model` that lead to this type, with their default ids."""
    module = ""
    """The module with its arrays and kernels; "" if it cannot encode."""
    reference = ""
    """The module of its plain reference; "" if it cannot encode."""
    stages = ""
    """The module that traces a fragment through the reference: `session` and `breakpoints`; "" for none."""

    # ---- reading a file

    flags: Mapping[str, bool] = {}
    """Flags that are not False before the file's keys are read."""
    has_merges = False
    """The file has a list of merges, and `tokenizer.ggml.pre` names the pre-tokenizer."""
    has_charsmap = False
    """The file may have a character map, and require NFC."""
    has_tokens = True
    """False: the type cannot encode."""
    may_be_empty = True
    """An empty list of tokens loads."""
    compares_scores = False
    """Scores order merges, so each must be a number."""
    reads_characters = False
    """Text is read as code points: bytes that are invalid UTF-8 become U+FFFD."""
    makes_pieces = False
    """llama.cpp computes all pieces while loading, and crashes on some tokens."""
    byte_tokens = True
    """A byte token is one that is written <0x0A>; False: there must be none."""
    checks_tables = False
    """Its tables may be refused while they are compiled, so loading compiles them."""

    has_segments = False
    """Whether the two texts of a row are segments of types 0 and 1."""

    # ---- text to ids

    alignment = AlignmentRules("texts only", "literal")

    def normalize(self, vocab: Vocab) -> tuple[steps.Normalizer, ...]:  # noqa: ARG002
        """The normalizers of a vocabulary."""
        return ()

    def split(self, vocab: Vocab) -> tuple[steps.Splitter, ...]:  # noqa: ARG002
        """The splitters of a vocabulary."""
        return ()

    def model(self, vocab: Vocab) -> models.Model:  # noqa: ARG002
        """What encodes one pre-token."""
        return models.NoModel()

    def around(self, vocab: Vocab) -> tuple[AroundRule, AroundRule]:
        """The ids that `add_special` adds before and after a text: none, whatever the file's flags are."""
        return (False, "bos", vocab.bos_id), (False, "eos", vocab.eos_id)

    def between(self, vocab: Vocab) -> tuple[int, ...] | None:
        """The ids that `add_special` adds between two texts of a row; None where the vocabulary has no separator.

        Source: llama.cpp's server, which orders a query and a document so.
        """
        _, (ends, _, last) = self.around(vocab)
        if not vocab.add_sep or vocab.sep_id == NO_TOKEN:
            return None
        return (*((last,) if ends and last != NO_TOKEN else ()), vocab.sep_id)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:
        """The first id of an encoded newline. Source: llama.cpp, `linefeed_id` in `llama_vocab::impl::load`.

        llama.cpp determines it while loading, before it reads the file's special ids. So it is encoded with the type's
        default ids and without special tokens.
        """
        if self.ids_change_later(vocab):
            encoder = type(encoder)(
                vocab._replace(
                    unk_id=vocab.default_unk_id, attributes=vocab.file_attributes,
                    special_tokens=np.zeros(0, np.int32), add_bos=False, add_eos=False,
                )
            )  # fmt: skip
        ids: NDArray[np.int32] = encoder.one(b"\n", encoder.bare_rule())
        return int(ids[0]) if ids.size else vocab.default_pad_id

    def ids_change_later(self, vocab: Vocab) -> bool:
        """Whether facts that llama.cpp learns after it has encoded the newline can change the ids of a text."""
        return vocab.unk_id != vocab.default_unk_id

    # ---- ids to text

    def prints(self, vocab: Vocab) -> str:  # noqa: ARG002
        """How a token's text becomes its piece, as `steps.JoinLlama` names it: with a space for each U+2581.

        For ESCAPES and ID its module has `pieces(vocab)`: what tokens print, and their offsets.
        """
        return steps.SPACES

    def differences(self, vocab: Vocab) -> list[str]:  # noqa: ARG002
        """Known differences between llama.cpp's ids, which are jittok's, and those of the model's own tokenizer.

        "Measured" means on documents tokenized with both; the rest is from llama.cpp's code and issue tracker. Notes on
        a single pre-tokenizer are in its record.
        """
        return []


class FlaggedType(VocabType):
    """Types that add BOS and EOS where the file's flags are set."""

    def around(self, vocab: Vocab) -> tuple[AroundRule, AroundRule]:
        """BOS and EOS as flagged, if the release of llama.cpp reads the flags for this model."""
        bos, eos = vocab.adds_around and vocab.add_bos, vocab.adds_around and vocab.add_eos
        return (bool(bos), "bos", vocab.bos_id), (bool(eos), "eos", vocab.eos_id)


class Spm(FlaggedType):
    """SPM: sentencepiece's BPE, merged by scores."""

    name = "spm"
    gguf_models = {"llama": DefaultIds(bos=1, eos=2, unk=0)}
    module, reference, stages = "jittok.kernels.models.spm", "jittok.reference.models.spm", "jittok.trace.sessions.spm"
    flags = {"add_space_prefix": True, "add_bos": True}
    compares_scores = makes_pieces = True
    alignment = AlignmentRules("scored", "rewritten", "SPM", prefix=True, well_formed=True)

    def normalize(self, vocab: Vocab) -> tuple[steps.Normalizer, ...]:
        """A mark before the text if flagged, and a mark for each space."""
        from jittok.common.unicode.characters import SPACE_MARK

        prefix = (steps.PrependBehindSpecial(SPACE_MARK),) if vocab.add_space_prefix else ()
        return (*prefix, _escape())

    def model(self, vocab: Vocab) -> models.Model:
        """Merges by score."""
        return models.ScoredMerges(vocab.scores)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002
        """The byte token <0x0A>, else the token whose text is a newline, else the padding token."""
        return vocab.ids.get(b"<0x0A>", vocab.ids.get(b"\n", vocab.default_pad_id))

    def differences(self, vocab: Vocab) -> list[str]:
        """Of spaces, normalization and added tokens."""
        notes = []
        if vocab.add_space_prefix:
            notes.append(
                "a space is prepended to the text and to the text after every special token, "
                "while the model's own tokenizer does so only at the start"
            )
        notes.append(
            "text is not normalized (no NFKC, no merging of spaces), even if the sentencepiece model specifies it"
        )
        notes.append(
            "tokens that the model's own file adds without calling them special (runs of spaces, </s>), and control "
            "tokens that a converter made user-defined, may be matched by only one of the two (ChatGLM3's `sop` within "
            '"philosophy"; measured: 3 of 25 English documents)'
        )
        return notes


class Bpe(FlaggedType):
    """BPE over the pre-tokens of a pre-tokenizer. Some models of this type have steps of their own."""

    name = "bpe"
    gguf_models = {
        "gpt2": DefaultIds(bos=11, eos=11),
        "hybriddna": DefaultIds(bos=11, eos=11),
        "whitespace": DefaultIds(bos=11, eos=11),
        "gemma4": DefaultIds(),
    }
    module, reference, stages = "jittok.kernels.models.bpe", "jittok.reference.models.bpe", "jittok.trace.sessions.bpe"
    flags = {"escape_whitespaces": False, "clean_spaces": True}
    has_merges = reads_characters = makes_pieces = True
    alignment = AlignmentRules("symbols", "rewritten", "BPE", well_formed=True)

    def normalize(self, vocab: Vocab) -> tuple[steps.Normalizer, ...]:
        """A mark for each space if escaped, marks before lines, U+FFFD for invalid UTF-8; lower case."""
        escape: tuple[steps.Normalizer, ...] = (_escape(),) if vocab.escape_whitespaces else ()
        if vocab.model == "whitespace":
            lower: tuple[steps.Normalizer, ...] = (steps.Lowercase(),) if vocab.lowercase else ()
            return (*escape, steps.ReadUtf8(vocab.shortest_utf8), *lower)
        return escape if vocab.model == "hybriddna" else (*escape, *_read(vocab, pre_type(vocab.pre_type)))

    def split(self, vocab: Vocab) -> tuple[steps.Splitter, ...]:
        """The patterns of the pre-tokenizer; before them white space or DNA, after them the byte alphabet."""
        from jittok.common.unicode.characters import KMER

        pre = pre_type(vocab.pre_type)
        first: tuple[steps.Splitter, ...] = ()
        if vocab.model == "whitespace":
            first = (steps.CutWhite(), *_read(vocab, pre))
        elif vocab.model == "hybriddna":
            begin, end, unknown = (vocab.ids.get(text, NO_TOKEN) for text in DNA)
            known = NO_TOKEN not in (begin, end, unknown)
            first = (*((steps.Kmers(begin, end, unknown, KMER),) if known else ()), *_read(vocab, pre))
        cuts = (steps.Cut(steps.Pattern(regex, engine=engine), steps.ISOLATED) for regex, engine in pre.patterns)
        return (*first, *cuts, *((steps.SpellBytes(),) if pre.byte_encode else ()))

    def model(self, vocab: Vocab) -> models.Model:
        """Merges by rank."""
        pre = pre_type(vocab.pre_type)
        return models.PairMerges(
            vocab.merge_bytes, vocab.merge_offsets, vocab.ignore_merges, pre.newlines_whole, pre.byte_encode
        )

    def prints(self, vocab: Vocab) -> str:
        """Byte-level, or as in SPM."""
        return steps.SPACES if vocab.escape_whitespaces else steps.BYTE_ALPHABET

    def ids_change_later(self, vocab: Vocab) -> bool:  # noqa: ARG002
        """Never: BPE gives no text an unknown token."""
        return False

    def differences(self, vocab: Vocab) -> list[str]:
        """Of the pre-tokenizer, user-defined tokens, normalization and Unicode's versions."""
        from jittok.kernels.pretokenize.records import notes as notes_of

        notes, pre = [], vocab.pre or ""
        if pre in ("", "default") and vocab.model == "gpt2":
            notes.append(
                f"tokenizer.ggml.pre is {'absent' if not pre else 'default'}: llama.cpp falls back to a pattern that "
                "few models were trained with, so ids are probably wrong; convert the model again with a current "
                "converter"
            )
        notes += notes_of(pre)
        if (vocab.attributes[vocab.special_tokens] & USER_BIT).any():
            notes.append(
                "user-defined tokens are matched longest first; the model's own tokenizer matches the leftmost first"
            )
        notes.append(
            "text is never normalized: where the model's own tokenizer applies NFC, as Qwen's does, decomposed text "
            "gets other ids (measured with Qwen 3: 2 of 72 multilingual documents, English and code are equal)"
        )
        notes.append(
            "characters that are newer than llama.cpp's tables of Unicode (such as U+10D40), and U+017F after an "
            "apostrophe, are split differently than by Unicode 16.0"
        )
        return notes


class Wpm(VocabType):
    """WordPiece."""

    name = "wpm"
    gguf_models = {"bert": DefaultIds(bos=101, unk=100, sep=102, pad=0, mask=103)}
    module, reference, stages = "jittok.kernels.models.wpm", "jittok.reference.models.wpm", "jittok.trace.sessions.wpm"
    flags = {"clean_spaces": True, "add_bos": True, "add_sep": True}
    reads_characters = makes_pieces = True
    may_be_empty = byte_tokens = False
    has_segments = True
    alignment = AlignmentRules("keys only", "words")

    def split(self, vocab: Vocab) -> tuple[steps.Splitter, ...]:
        """Words, which are normalized while they are cut."""
        return (steps.BertWords(vocab.lowercase, vocab.strip_accents, vocab.shortest_utf8),)

    def model(self, vocab: Vocab) -> models.Model:
        """The longest match, again and again."""
        return models.LongestText(vocab.unk_id, vocab.max_token_length)

    def around(self, vocab: Vocab) -> tuple[AroundRule, AroundRule]:
        """CLS and SEP always."""
        return (True, "bos", vocab.bos_id), (True, "seperator", vocab.sep_id)

    def between(self, vocab: Vocab) -> tuple[int, ...] | None:
        """SEP, which ends the second text, too."""
        return None if vocab.sep_id == NO_TOKEN else (vocab.sep_id,)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002
        """The padding token."""
        return vocab.default_pad_id

    def differences(self, vocab: Vocab) -> list[str]:  # noqa: ARG002
        """Of the prefix of parts, CLS and SEP, and Unicode."""
        return [
            "the ## prefix of word parts is lost in conversion: ids are the same, token texts are not",
            "add_special always adds CLS and SEP, regardless of the file's flags",
            READ_OTHERWISE,
        ]


class Ugm(FlaggedType):
    """Unigram."""

    name = "ugm"
    gguf_models = {"t5": DefaultIds(eos=1, unk=2, pad=0)}
    module, reference, stages = "jittok.kernels.models.ugm", "jittok.reference.models.ugm", "jittok.trace.sessions.ugm"
    flags = {"add_eos": True}
    has_charsmap = reads_characters = makes_pieces = True
    may_be_empty = False
    alignment = AlignmentRules("texts only", "unigram")

    def normalize(self, vocab: Vocab) -> tuple[steps.Normalizer, ...]:
        """NFC if flagged, then sentencepiece's normalizer as llama.cpp has it."""
        squeeze = steps.SqueezeLlama(
            vocab.charsmap,
            prefix=vocab.add_space_prefix,
            squeeze=vocab.remove_extra_whitespaces,
            escape=vocab.escape_whitespaces,
            suffix=vocab.treat_whitespace_as_suffix,
            shortest=vocab.shortest_utf8,
        )
        return (steps.ComposeAll(), squeeze) if vocab.nfc else (squeeze,)

    def model(self, vocab: Vocab) -> models.Model:
        """The path of tokens with the highest sum of scores."""
        user_defined = read_only_array(vocab.attributes & USER_BIT != 0, np.bool_)
        return models.Lattice(vocab.scores, vocab.file_attributes, user_defined, vocab.unk_id)

    def ids_change_later(self, vocab: Vocab) -> bool:
        """True for changed attributes as well: they decide which tokens a text can become."""
        return super().ids_change_later(vocab) or not np.array_equal(vocab.attributes, vocab.file_attributes)

    def differences(self, vocab: Vocab) -> list[str]:
        """Of equal scores and user-defined tokens."""
        notes = [
            "pieces of equal score may be chosen differently (measured: 4 of 150 code files with T5, prose is equal)"
        ]
        special = [token for token in vocab.special_tokens.tolist() if vocab.attributes[token] & USER_BIT]
        firsts = {first for token in special if (first := vocab.tokens[token][:1]) >= b"\x80"}
        if firsts:
            shown = ", ".join(sorted(f"{byte[0]:02X}" for byte in firsts))
            notes.append(
                f"user-defined tokens begin with the bytes {shown}: others that begin with one of them (quotation "
                "marks, dashes and the ellipsis begin with E2) become the unknown token (mT5: 53 of 150 English "
                "documents)"
            )
        return notes


class Rwkv(VocabType):
    """RWKV, whose vocabulary writes token texts with escapes."""

    name = "rwkv"
    gguf_models = {"rwkv": DefaultIds()}
    module, reference = "jittok.kernels.models.rwkv", "jittok.reference.models.rwkv"
    stages = "jittok.trace.sessions.rwkv"
    alignment = AlignmentRules("unescaped", "literal", unknown=1)

    def model(self, vocab: Vocab) -> models.Model:
        """The longest match."""
        return models.LongestEscaped(vocab.unk_id)

    def prints(self, vocab: Vocab) -> str:  # noqa: ARG002
        """With its escapes replaced."""
        return steps.ESCAPES

    def differences(self, vocab: Vocab) -> list[str]:
        """Of the first token."""
        if vocab.tokens[:1] != [b"<s>"]:
            return []
        return ["`<s>`, id 0, is matched in the text; the model's own list has no such token"]


class Plamo2(FlaggedType):
    """PLaMo-2."""

    name = "plamo2"
    gguf_models = {"plamo2": DefaultIds(bos=1, eos=2, unk=0, pad=3)}
    module, reference, stages = (
        "jittok.kernels.models.plamo2",
        "jittok.reference.models.plamo2",
        "jittok.trace.sessions.plamo2",
    )
    reads_characters = checks_tables = True
    alignment = AlignmentRules("texts", "rewritten", "PLAMO2", well_formed=True, drops_mark=True)

    def split(self, vocab: Vocab) -> tuple[steps.Splitter, ...]:
        """Segments around a byte order mark."""
        return (steps.PlamoSegments(False, vocab.shortest_utf8),)

    def model(self, vocab: Vocab) -> models.Model:
        """The path of least cost through the table of suffixes."""
        return models.Suffixes(vocab.scores, vocab.file_attributes)

    def prints(self, vocab: Vocab) -> str:  # noqa: ARG002
        """Unchanged."""
        return steps.TEXT


class Plamo3(Plamo2):
    """PLaMo-3: PLaMo-2 over segments that the text is split into first."""

    name = "plamo3"
    gguf_models = {"plamo3": DefaultIds(bos=1, eos=2, unk=0, pad=3)}
    alignment = AlignmentRules("texts", "rewritten", "PLAMO3", well_formed=True)

    def split(self, vocab: Vocab) -> tuple[steps.Splitter, ...]:
        """Segments: control sequences, digits, runs of other kinds."""
        return (steps.PlamoSegments(True, vocab.shortest_utf8),)


class FakeType(VocabType):
    """llama.cpp's type for its own tests: ids are hashes, and tokens print their ids."""

    name = "test"
    gguf_models = {"test": DefaultIds()}
    module, reference = "jittok.kernels.models.fake_model", "jittok.reference.models.fake_model"
    may_be_empty = False
    checks_tables = True
    alignment = AlignmentRules("texts only", "literal")

    def model(self, vocab: Vocab) -> models.Model:  # noqa: ARG002
        """The hash of each chunk."""
        return models.Hashed(CHUNK)

    def prints(self, vocab: Vocab) -> str:  # noqa: ARG002
        """Its id."""
        return steps.ID


class WithoutTokens(VocabType):
    """A model that has no vocabulary."""

    name = "none"
    gguf_models = {"none": DefaultIds(), "no_vocab": DefaultIds()}
    has_tokens = False

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002
        """None."""
        return NO_TOKEN


class FileUnigram(VocabType):
    """Unigram of files other than GGUF (see `jittok.encode.file_plan`); no vocabulary has this type."""

    name, module = "unigram", "jittok.kernels.models.ugm.files"


class FileWordPiece(VocabType):
    """WordPiece of files other than GGUF, for one pre-token at a time; no vocabulary has this type."""

    name, module = "wpm words", "jittok.kernels.models.wpm.words"


class FileUnigramWords(VocabType):
    """Unigram of files other than GGUF, for one pre-token at a time; no vocabulary has this type."""

    name, module = "unigram words", "jittok.kernels.models.ugm.words"


def _escape() -> steps.Replace:
    from jittok.common.unicode.characters import SPACE_MARK

    return steps.Replace(steps.Pattern(" ", literal=True), SPACE_MARK)


def _read(vocab: Vocab, pre: PreType) -> tuple[steps.BeginLines | steps.ReadUtf8, ...]:
    from jittok.common.unicode.characters import SPACE_MARK

    begin = (steps.BeginLines(SPACE_MARK),) if pre.begin_lines else ()
    return (*begin, steps.ReadUtf8(vocab.shortest_utf8))


TYPES: dict[str, VocabType] = {}
"""Every type by its name."""


def register(kind: VocabType) -> None:
    """Add a type, or replace the one of the same name."""
    TYPES[kind.name] = kind


for _kind in (Spm, Bpe, Wpm, Ugm, Rwkv, Plamo2, Plamo3, FakeType, WithoutTokens,
              FileUnigram, FileWordPiece, FileUnigramWords):  # fmt: skip
    register(_kind())
_PLAIN = VocabType()


def type_of_model(model: str) -> VocabType | None:
    """The type of a `tokenizer.ggml.model`, None for an unknown one."""
    return next((kind for kind in TYPES.values() if model in kind.gguf_models), None)


def type_named(name: str) -> VocabType:
    """The type of this name; for one that no GGUF has, a plain list of tokens."""
    return TYPES.get(name, _PLAIN)


def type_of(vocab: Vocab) -> VocabType:
    """The type of a vocabulary. KeyError if it is not registered."""
    return TYPES[vocab.type]


def ids_around(vocab: Vocab) -> tuple[int, int]:
    """The ids that `add_special` adds before and after a document, NO_TOKEN for none.

    Raises EncodingFailed if the vocabulary lacks a needed one, where llama.cpp aborts. Source: llama.cpp,
    `llama_vocab::impl::tokenize`.
    """
    wanted = type_of(vocab).around(vocab)
    for needed, name, token in wanted:
        if needed and token == NO_TOKEN:
            expected = f"a vocabulary with tokenizer.ggml.{name}_token_id, needed to add special tokens"
            raise EncodingFailed(0, 0, vocab, expected)
    before, after = (token if needed else NO_TOKEN for needed, _, token in wanted)
    return before, after
