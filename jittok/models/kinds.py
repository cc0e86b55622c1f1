"""What the package asks of a vocabulary type, and the answer of each type: one class a type.

A type has two parts. The class here is light: it knows the `Vocab` alone, so that loading, decoding and the facts of a
vocabulary import no kernel. The module that it names (`module`) has the arrays and kernels, see `Model`; it is imported
when the first text is encoded. What encodes, decodes and aligns asks `kind_of(vocab)` and compares no names of types.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from jittok.errors import EncodingFailed
from jittok.pipeline import Pipeline
from jittok.vocab.vocab import NO_TOKEN, Vocab

AS_IS, SPACED, BYTE_LEVEL = 0, 1, 2
"""How texts of tokens become pieces: as they are; U+2581 is a space; each character stands for a byte."""
Wanted = tuple[bool, str, int]
"""Whether an id is around a text, the name of its key, the id."""


class Alignment(NamedTuple):
    """Which of the ways in `jittok.align` finds the spans of this type's ids."""

    lengths: str  # how long tokens are: "symbols", "scored", "unescaped", "texts", "texts only", "keys only"
    walk: str  # how fragments are walked whose lengths do not tell: "rewritten", "words", "unigram", "literal"
    rewriting: str = ""  # what "rewritten" undoes: "bpe", "spm", "plamo2", "plamo3", "rwkv"
    literal: str = ""  # what encodes once more in Python, at the end: "bpe", "spm", "chunks"
    prefix: bool = False  # a text may begin with a space that was put before
    well_formed: bool = False  # bytes that are invalid UTF-8 become something else
    drops_mark: bool = False  # a byte order mark before is dropped
    unknown: int = 0  # bytes that id -1 stands for


class Model(Protocol):
    """The module of a type's arrays and kernels. A model may also have `regrow`, `may_part`, `for_much_text`,
    `with_chain`, `ODD_TEXT` (see `jittok.encode.encoder`) and, with `Kind.own_pieces`, `pieces(vocab)`."""

    IDS_PER_BYTE: int

    def compile_pipeline(self, pipeline: Pipeline) -> Any:
        """Read-only flat arrays, of the steps and the model alone."""

    def make_work(self, arrays: Any, longest: int) -> Any:
        """Scratch for fragments of up to `longest` bytes."""

    def encode_fragments(self, *args: Any) -> int:
        """The kernel (see `jittok.fragments`)."""


class Kind(Protocol):
    """What a vocabulary type says of itself without its kernels."""

    name: str  # Vocab.type
    module: str  # of its `Model`; "" if it cannot encode
    alignment: Alignment
    own_pieces: bool  # its module says what tokens print: `pieces(vocab)` gives them and their ends
    strict_bytes: bool  # a byte token prints its byte only if it is written <0xXX>

    def around(self, vocab: Vocab) -> tuple[Wanted, Wanted]:
        """What `add_special` puts before and after a text."""

    def spelling(self, vocab: Vocab) -> int:
        """How texts of tokens become pieces: AS_IS, SPACED or BYTE_LEVEL."""

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:
        """The id of a newline, or NO_TOKEN."""


class Plain:
    """What most types say."""

    name, module = "", ""
    alignment = Alignment("texts only", "literal")
    own_pieces = strict_bytes = False

    def around(self, vocab: Vocab) -> tuple[Wanted, Wanted]:
        """Nothing, whatever the file's flags say."""
        return (False, "bos", vocab.bos_id), (False, "eos", vocab.eos_id)

    def spelling(self, vocab: Vocab) -> int:  # noqa: ARG002  other types look at it
        """U+2581 is a space."""
        return SPACED

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:
        """The first id of an encoded newline. Source: llama.cpp, `linefeed_id` in `llama_vocab::impl::load`.

        It is found while loading, before the file's special ids are known: with the type's defaults, nothing cut out.
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
        """Whether what is known only after loading can change the ids of a text."""
        return vocab.unk_id != vocab.default_unk_id


class Flagged(Plain):
    """BOS and EOS are around a text where the flags say so."""

    def around(self, vocab: Vocab) -> tuple[Wanted, Wanted]:
        """BOS and EOS by the flags, if the release of llama.cpp obeys them."""
        bos, eos = vocab.adds_around and vocab.add_bos, vocab.adds_around and vocab.add_eos
        return (bool(bos), "bos", vocab.bos_id), (bool(eos), "eos", vocab.eos_id)


class Spm(Flagged):
    """SPM: sentencepiece's BPE, merged by scores."""

    name, module = "spm", "jittok.models.spm"
    alignment = Alignment("scored", "rewritten", "spm", "spm", prefix=True, well_formed=True)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002  the vocabulary says it
        """The byte token, else the token of that text, else padding."""
        return vocab.ids.get(b"<0x0A>", vocab.ids.get(b"\n", vocab.default_pad_id))


class Bpe(Flagged):
    """BPE with words cut by a pre-tokenizer."""

    name, module = "bpe", "jittok.models.bpe"
    alignment = Alignment("symbols", "rewritten", "bpe", "bpe", well_formed=True)

    def spelling(self, vocab: Vocab) -> int:
        """In the alphabet of bytes, or as in SPM."""
        return SPACED if vocab.escape_whitespaces else BYTE_LEVEL

    def changes(self, vocab: Vocab) -> bool:  # noqa: ARG002
        """Never: no unknown token comes of a text."""
        return False


class Wpm(Plain):
    """WordPiece."""

    name, module = "wpm", "jittok.models.wpm"
    alignment = Alignment("keys only", "words")

    def around(self, vocab: Vocab) -> tuple[Wanted, Wanted]:
        """CLS and SEP in any case."""
        return (True, "bos", vocab.bos_id), (True, "seperator", vocab.sep_id)

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002  the vocabulary says it
        """Padding."""
        return vocab.default_pad_id


class Ugm(Flagged):
    """Unigram."""

    name, module = "ugm", "jittok.models.ugm"
    alignment = Alignment("texts only", "unigram")

    def changes(self, vocab: Vocab) -> bool:
        """Attributes count as well: they say which tokens a text can become."""
        return super().changes(vocab) or not np.array_equal(vocab.attributes, vocab.file_attributes)


class Unigram(Plain):
    """Unigram of files other than GGUF (see `jittok.encode.pipeline_encoder`); no vocabulary has this type."""

    name, module = "unigram", "jittok.models.ugm.files"


class WordPieces(Plain):
    """WordPiece of files other than GGUF, over words that were cut before; no vocabulary has this type."""

    name, module = "wpm words", "jittok.models.wpm.words"


class UnigramWords(Plain):
    """Unigram in the same way."""

    name, module = "unigram words", "jittok.models.ugm.words"


class Rwkv(Plain):
    """RWKV: texts of tokens are written with escapes."""

    name, module = "rwkv", "jittok.models.rwkv"
    alignment = Alignment("unescaped", "rewritten", "rwkv", "bpe", unknown=1)
    own_pieces = True


class Plamo2(Flagged):
    """PLaMo-2."""

    name, module = "plamo2", "jittok.models.plamo2"
    alignment = Alignment("texts", "rewritten", "plamo2", "bpe", well_formed=True, drops_mark=True)
    strict_bytes = True

    def spelling(self, vocab: Vocab) -> int:  # noqa: ARG002  other types look at it
        """As they are."""
        return AS_IS


class Plamo3(Plamo2):
    """PLaMo-3: as PLaMo-2, in parts that the text is cut into first."""

    name = "plamo3"
    alignment = Alignment("texts", "rewritten", "plamo3", "bpe", well_formed=True)


class Test(Plain):
    """llama.cpp's type for its own tests: ids are hashes, and tokens print their numbers."""

    name, module = "test", "jittok.models.test_model"
    alignment = Alignment("texts only", "literal", literal="chunks")
    own_pieces = True


class WithoutTokens(Plain):
    """A model that has no vocabulary."""

    name = "none"

    def newline_id(self, vocab: Vocab, encoder: Any) -> int:  # noqa: ARG002  there is none to ask
        """None."""
        return NO_TOKEN


KINDS: dict[str, Kind] = {}
"""Every type by its name."""


def register(kind: Kind) -> None:
    """Make a type known. A later one of the same name takes its place."""
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
    Test(),
    WithoutTokens(),
):
    register(_kind)


def kind_of(vocab: Vocab) -> Kind:
    """The type of a vocabulary. KeyError for one that no one has registered."""
    return KINDS[vocab.type]


def around(vocab: Vocab) -> tuple[int, int]:
    """The ids before and after a document with `add_special`, NO_TOKEN for none.

    Raises EncodingFailed when the one needed is not in the vocabulary (llama.cpp aborts). Source: llama.cpp,
    `llama_vocab::impl::tokenize`.
    """
    wanted = kind_of(vocab).around(vocab)
    for needed, name, token in wanted:
        if needed and token == NO_TOKEN:
            expected = f"a vocabulary with tokenizer.ggml.{name}_token_id, which add_special needs"
            raise EncodingFailed(0, 0, vocab, expected)
    before, after = (token if needed else NO_TOKEN for needed, _, token in wanted)
    return before, after
