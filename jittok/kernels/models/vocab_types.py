"""The interface of a vocabulary type, and one class per type that implements it.

A type has two parts. The class here needs the `Vocab` only, so that loading and decoding import no kernels. The module
named by `module` holds the arrays and kernels (see `Model`) and is imported when the first text is encoded. Encoders,
decoders and aligners call `kind_of(vocab)` and never compare names of types.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.errors import EncodingFailed
from jittok.vocab.vocab import NO_TOKEN, Vocab

AS_IS, SPACED, BYTE_LEVEL = 0, 1, 2
"""How a token's text becomes its piece: unchanged; with a space for each U+2581; with a byte for each character."""
PrefixRule = tuple[bool, str, int]
"""(whether an id is added to a text, the name of its metadata key, the id)."""


class AlignmentRules(NamedTuple):
    """How `jittok.align` finds the spans of this type's ids."""

    lengths: str  # where token lengths come from: "symbols", "scored", "unescaped", "texts", "texts only", "keys only"
    walk: str  # for fragments that lengths do not decide: "rewritten", "words", "unigram", "literal"
    rewriting: str = ""  # the rewriting that "rewritten" undoes: "bpe", "spm", "plamo2", "plamo3", "rwkv"
    prefix: bool = False  # the encoder may put a space before a text
    well_formed: bool = False  # the encoder replaces invalid UTF-8
    drops_mark: bool = False  # the encoder drops a byte order mark at the start
    unknown: int = 0  # bytes that id -1 covers


class Model(Protocol):
    """The module that holds a type's arrays and kernels. It may also define `regrow`, `can_split_at_spaces`,
    `optimized_layout`, `with_chain`, `ODD_TEXT` (see `jittok.encode.encoder`) and, with `VocabType.own_pieces`,
    `pieces(vocab)`."""

    IDS_PER_BYTE: int

    def compile_pipeline(self, pipeline: Pipeline) -> Any:
        """Read-only flat arrays that depend on the pipeline's steps and model only."""

    def make_work(self, arrays: Any, longest: int) -> Any:
        """Scratch for fragments of up to `longest` bytes."""

    def encode_fragments(self, *args: Any) -> int:
        """The kernel (see `jittok.kernels.fragments`)."""


class VocabType(Protocol):
    """The facts of a vocabulary type that need no kernels."""

    name: str  # Vocab.type
    module: str  # import path of its `Model`; "" if it cannot encode
    alignment: AlignmentRules
    own_pieces: bool  # `pieces(vocab)` of its module returns what tokens print, and their offsets
    strict_bytes: bool  # a byte token prints its byte only if its text is <0xXX>

    def around(self, vocab: Vocab) -> tuple[PrefixRule, PrefixRule]:
        """The ids that `add_special` adds before and after a text."""

    def spelling(self, vocab: Vocab) -> int:
        """How a token's text becomes its piece: AS_IS, SPACED or BYTE_LEVEL."""

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:
        """The id of a newline, or NO_TOKEN."""


class BasicType:
    """The defaults, which most types share."""

    name, module = "", ""
    alignment = AlignmentRules("texts only", "literal")
    own_pieces = strict_bytes = False

    def around(self, vocab: Vocab) -> tuple[PrefixRule, PrefixRule]:
        """No ids, whatever the file's flags are."""
        return (False, "bos", vocab.bos_id), (False, "eos", vocab.eos_id)

    def spelling(self, vocab: Vocab) -> int:  # noqa: ARG002  other types look at it
        """U+2581 becomes a space."""
        return SPACED

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:
        """The first id of an encoded newline. Source: llama.cpp, `linefeed_id` in `llama_vocab::impl::load`.

        llama.cpp determines it while loading, before it reads the file's special ids. So it is encoded with the type's
        default ids and without special tokens.
        """
        bare = vocab._replace(
            unk_id=vocab.default_unk_id,
            attributes=vocab.file_attributes,
            special_tokens=np.zeros(0, np.int32),
            add_bos=False,
            add_eos=False,
        )
        if self.changes(vocab):
            encoder = type(encoder)(bare)
        ids: NDArray[np.int32] = encoder.one(b"\n", encoder.bare_rule())
        return int(ids[0]) if ids.size else vocab.default_pad_id

    def changes(self, vocab: Vocab) -> bool:
        """Whether facts that llama.cpp learns after this point of loading can change the ids of a text."""
        return vocab.unk_id != vocab.default_unk_id


class FlaggedType(BasicType):
    """Types that add BOS and EOS where the file's flags are set."""

    def around(self, vocab: Vocab) -> tuple[PrefixRule, PrefixRule]:
        """BOS and EOS as flagged, if the release of llama.cpp reads the flags for this type."""
        bos, eos = vocab.adds_around and vocab.add_bos, vocab.adds_around and vocab.add_eos
        return (bool(bos), "bos", vocab.bos_id), (bool(eos), "eos", vocab.eos_id)


class Spm(FlaggedType):
    """SPM: sentencepiece's BPE, merged by scores."""

    name, module = "spm", "jittok.kernels.models.spm"
    alignment = AlignmentRules("scored", "rewritten", "spm", prefix=True, well_formed=True)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002  the vocabulary says it
        """The byte token <0x0A>, else the token whose text is a newline, else the padding token."""
        return vocab.ids.get(b"<0x0A>", vocab.ids.get(b"\n", vocab.default_pad_id))


class Bpe(FlaggedType):
    """BPE over the pre-tokens of a pre-tokenizer."""

    name, module = "bpe", "jittok.kernels.models.bpe"
    alignment = AlignmentRules("symbols", "rewritten", "bpe", well_formed=True)

    def spelling(self, vocab: Vocab) -> int:
        """Byte-level, or as in SPM."""
        return SPACED if vocab.escape_whitespaces else BYTE_LEVEL

    def changes(self, vocab: Vocab) -> bool:  # noqa: ARG002
        """Never: BPE gives no text an unknown token."""
        return False


class Wpm(BasicType):
    """WordPiece."""

    name, module = "wpm", "jittok.kernels.models.wpm"
    alignment = AlignmentRules("keys only", "words")

    def around(self, vocab: Vocab) -> tuple[PrefixRule, PrefixRule]:
        """CLS and SEP always."""
        return (True, "bos", vocab.bos_id), (True, "seperator", vocab.sep_id)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002  the vocabulary says it
        """The padding token."""
        return vocab.default_pad_id


class Ugm(FlaggedType):
    """Unigram."""

    name, module = "ugm", "jittok.kernels.models.ugm"
    alignment = AlignmentRules("texts only", "unigram")

    def changes(self, vocab: Vocab) -> bool:
        """True for changed attributes as well: they decide which tokens a text can become."""
        return super().changes(vocab) or not np.array_equal(vocab.attributes, vocab.file_attributes)


class Unigram(BasicType):
    """Unigram of files other than GGUF (see `jittok.encode.pipeline_encoder`); no vocabulary has this type."""

    name, module = "unigram", "jittok.kernels.models.ugm.files"


class WordPieces(BasicType):
    """WordPiece of files other than GGUF, for one pre-token at a time; no vocabulary has this type."""

    name, module = "wpm words", "jittok.kernels.models.wpm.words"


class UnigramWords(BasicType):
    """Unigram of files other than GGUF, for one pre-token at a time; no vocabulary has this type."""

    name, module = "unigram words", "jittok.kernels.models.ugm.words"


class Rwkv(BasicType):
    """RWKV, whose vocabulary writes token texts with escapes."""

    name, module = "rwkv", "jittok.kernels.models.rwkv"
    alignment = AlignmentRules("unescaped", "rewritten", "rwkv", unknown=1)
    own_pieces = True


class Plamo2(FlaggedType):
    """PLaMo-2."""

    name, module = "plamo2", "jittok.kernels.models.plamo2"
    alignment = AlignmentRules("texts", "rewritten", "plamo2", well_formed=True, drops_mark=True)
    strict_bytes = True

    def spelling(self, vocab: Vocab) -> int:  # noqa: ARG002  other types look at it
        """Unchanged."""
        return AS_IS


class Plamo3(Plamo2):
    """PLaMo-3: PLaMo-2 over segments that the text is split into first."""

    name = "plamo3"
    alignment = AlignmentRules("texts", "rewritten", "plamo3", well_formed=True)


class FakeType(BasicType):
    """llama.cpp's type for its own tests: ids are hashes, and tokens print their ids."""

    name, module = "test", "jittok.kernels.models.fake_model"
    alignment = AlignmentRules("texts only", "literal")
    own_pieces = True


class WithoutTokens(BasicType):
    """A model that has no vocabulary."""

    name = "none"

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002  there is none to ask
        """None."""
        return NO_TOKEN


KINDS: dict[str, VocabType] = {}
"""Every type by its name."""


def register(kind: VocabType) -> None:
    """Add a type, or replace the one of the same name."""
    KINDS[kind.name] = kind


for _kind in (
    Spm(),
    Bpe(),
    Wpm(),
    Ugm(),
    Unigram(),
    WordPieces(),
    UnigramWords(),
    Rwkv(),
    Plamo2(),
    Plamo3(),
    FakeType(),
    WithoutTokens(),
):
    register(_kind)


def kind_of(vocab: Vocab) -> VocabType:
    """The type of a vocabulary. KeyError if it is not registered."""
    return KINDS[vocab.type]


def around(vocab: Vocab) -> tuple[int, int]:
    """The ids that `add_special` adds before and after a document, NO_TOKEN for none.

    Raises EncodingFailed if the vocabulary lacks a needed one, where llama.cpp aborts. Source: llama.cpp,
    `llama_vocab::impl::tokenize`.
    """
    wanted = kind_of(vocab).around(vocab)
    for needed, name, token in wanted:
        if needed and token == NO_TOKEN:
            expected = f"a vocabulary with tokenizer.ggml.{name}_token_id, needed to add special tokens"
            raise EncodingFailed(0, 0, vocab, expected)
    before, after = (token if needed else NO_TOKEN for needed, _, token in wanted)
    return before, after
