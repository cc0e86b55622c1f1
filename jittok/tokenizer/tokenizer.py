"""The class `Tokenizer`: checks arguments and delegates to one package per method."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.common.rows.ids import Ids
from jittok.encode import limits
from jittok.encode.fallback.first_texts import (
    COST_PER_TEXT,
    around_rows,
    encode_batch_in_python,
    is_cheap,
    may_compile_later,
    newline_meanwhile,
    newline_of,
    short_texts,
)
from jittok.errors import InvalidToken, InWords, JittokError, UnsupportedVocab, refuse_keywords
from jittok.kernels.inputs import Documents, Errors, OneText, check_options, to_bytes, to_ids
from jittok.kernels.jit import WouldCompile, frozen, interruptible_if_long, run_interruptible, without_compiling
from jittok.kernels.pretoken_cache.default_size import bounded, default_cache_bytes
from jittok.kernels.vocab_cache import CachedArrays, save_arrays
from jittok.tokenizer.batching import Batching
from jittok.tokenizer.chatting import Chatting
from jittok.tokenizer.chunking import Chunking
from jittok.tokenizer.facts import KERNELS, Facts, or_none
from jittok.tokenizer.hinting import Hinting
from jittok.tokenizer.looking import Looking
from jittok.tokenizer.pickling import own_of, read_only
from jittok.tokenizer.python_fallback import decode_in_python, piece_in_python
from jittok.vocab import Vocab, bundled_names
from jittok.vocab.types import type_named

if TYPE_CHECKING:
    from jittok.align import Aligner, Alignment, AlignmentBatch
    from jittok.align.files import FileAligner
    from jittok.common.display.progress import Show
    from jittok.common.rows import TokenArray
    from jittok.decode.pieces import PieceTable
    from jittok.decode.reference_decoder import ReferenceDecoder
    from jittok.decode.rows import DecodeFrame, Decoder
    from jittok.decode.stream import StreamDecoder
    from jittok.encode.cutters import EncodeOptions
    from jittok.encode.encoder import Encoder
    from jittok.kernels.inputs import Texts
    from jittok.kernels.memory.python_objects.encode_builtin import Builtin

Kind = TypeVar("Kind", Vocab, Pipeline)
A_TEXT = b"a text"
IDS_PER_SLICE = 1 << 18
"""Ids that are decoded at once."""


class Tokenizer(Batching, Chatting, Chunking, Looking, Facts, Hinting):
    """A tokenizer that encodes and decodes exactly as llama.cpp does (for a GGUF vocabulary) or as the model's own
    library (for any other file). Immutable, thread-safe and picklable.

    A text gives its own tokens and nothing else unless asked: `add_special=False` puts no BOS or EOS around it,
    `parse_special=False` reads the text of a control token as text.
    """

    def __init__(
        self, vocab: Vocab | Pipeline, *, cache: bool = True, cache_bytes: int | None = None,
        llama_cpp: str | None = None, pre: str | None = None, again: ReloadRecipe | None = None,
        key: str | None = None, kept: CachedArrays | None = None, file_options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if isinstance(vocab, Pipeline) and vocab.format == "gguf":
            raise TypeError("Tokenizer: found the steps of a GGUF, expected a Vocab: write jittok.load(path)")
        if not isinstance(vocab, Vocab | Pipeline):
            named = isinstance(vocab, str | os.PathLike)
            call = f"jittok.bundled({vocab!r})" if vocab in bundled_names() else "jittok.load(path)"
            found = repr(vocab) if named else type(vocab).__name__
            raise TypeError(f"Tokenizer: found {found}, expected a Vocab: write {call}")
        bound = default_cache_bytes() if cache_bytes is None else cache_bytes
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
            raise ValueError(f"cache_bytes: found {cache_bytes!r}, expected a number of bytes, 0 or more")
        self.vocab = vocab
        self._cache_bytes = bounded(bound)
        self._options: dict[str, Any] = {"cache": bool(cache), "cache_bytes": cache_bytes}
        self._asked: dict[str, Any] = {"llama_cpp": llama_cpp, "pre": pre}  # None: the newest one, what the file says
        self._again = again
        self._key = key  # its name in the cache of compiled vocabularies
        self._kept = kept
        self._file_options = file_options or {}  # what `load` was told beside the file
        self._rules: dict[tuple[bool, bool, str], tuple[Encoder, EncodeOptions]] = {}  # by the options of calls
        self._builtins: dict[tuple[bool, bool, str], Builtin | None] = {}  # the same, for one short text
        self._plain: Builtin | None = None  # that of the defaults
        self._may_wait = type_named(self.type).has_tokens  # whether kernels may have to be compiled
        self._text_may_wait = isinstance(vocab, Vocab)  # and those of decoding
        self._read_alone = False  # tables are made when there is text enough for their kernels
        if kept is None:
            self._compile_if_at_hand()

    def _compile_if_at_hand(self) -> None:
        """Make the encoder now, as it may fail. Where kernels would have to be compiled for its tables it is made when
        there is text enough for them."""
        if not (self._may_wait and is_cheap(0)) or type_named(self.type).checks_tables:
            self._encoder  # noqa: B018  made when it is asked for
            return
        try:
            with without_compiling():
                self._encoder  # noqa: B018
        except WouldCompile:
            may_compile_later(self.vocab)
            self._lacks_kernels = self._read_alone = True

    @once
    def _lacks_kernels(self) -> bool:
        """Whether a kernel that any text needs would have to be compiled."""
        try:
            with without_compiling():
                encoder, rule = self._rule(False, False, "strict")
                encoder.one(A_TEXT, rule)
        except WouldCompile:
            return True
        except JittokError:  # a kernel said it
            pass
        return False

    @once
    def _encoder(self) -> Encoder | None:
        """What encodes, None for type "none". What was compiled before is fetched by the first text."""
        encoder = self._make_encoder()
        if self._kept is None and self._key is not None and encoder is not None:
            save_arrays(self._key, "encoder", {"vocab": self.vocab._replace(source=""), **encoder.compiled()})
        return encoder

    def _make_encoder(self) -> Encoder | None:
        if isinstance(self.vocab, Pipeline):
            from jittok.encode.file_plan import make_encoder

            return make_encoder(self.vocab, self._cache_bytes, self._kept)  # type: ignore[return-value]
        from jittok.encode.encoder import Encoder

        if not type_named(self.vocab.type).has_tokens:
            return None
        compiled = self._kept.part("arrays", "plain", "parsed") if self._kept else None
        options = {"cache_bytes": self._cache_bytes, **(compiled or {})}
        return run_interruptible(Encoder, self.vocab, **options)

    # ---- text to ids

    def encode(
        self, text: OneText, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, literal: ArrayLike | None = None, **others: NoReturn,
    ) -> Ids:  # fmt: skip
        """int32[n]: the ids of one text, str or bytes (which need not be UTF-8), a NumPy array (see `Ids`).

        `literal`: spans of the text, (n, 2) offsets, in characters of a str, in bytes of bytes. There no token that
        needs `parse_special` is found: what users wrote cannot become a control token. One that is literal in part
        raises MixedToken.

        `errors="replace"`: a lone surrogate of a str, and bytes that no tokenizer can take, are encoded as U+FFFD (or
        as the unknown token). Raises EncodingFailed otherwise. `threads`: as for `encode_batch`, for a text of 4 MB and
        more; a shorter one takes no other thread.
        """
        if (
            add_special is False
            and parse_special is False
            and errors == "strict"
            and threads is None
            and literal is None
            and not others
        ):
            builtin = self._plain  # a dictionary would be asked for longer than a short text takes
        else:
            if others:
                refuse_keywords(self.encode, others)
            if literal is not None:
                return self._encode_literal(text, literal, add_special, parse_special, errors)
            try:
                builtin = self._builtins.get((add_special, parse_special, errors)) if threads is None else None
            except TypeError:  # see `_rule`
                builtin = None
        if builtin is not None:
            ids = builtin(text)
            if ids is not None:
                return ids  # type: ignore[no-any-return]
        if self._may_wait and threads is None:
            replace = check_options(add_special, parse_special, errors)
            rows = self._meanwhile([to_bytes(text, replace)], add_special, parse_special, replace)
            if rows is not None:
                return rows[0].view(Ids)
        encoder, rule = self._rule(add_special, parse_special, errors)
        if threads is None:
            if type(text) is str and not text.isascii():  # its UTF-8 is as quick to read as any bytes
                text = to_bytes(text, rule.replace)
                if builtin is not None and (ids := builtin(text)) is not None:
                    return ids  # type: ignore[no-any-return]
            ids = encoder.try_short_text(text, rule)
            if ids is not None:
                self._builtins[bool(add_special), bool(parse_special), errors] = encoder.builtins[id(rule)]
                object.__setattr__(self, "_plain", self._builtins.get((False, False, "strict")))
                return ids.view(Ids)
        raw = to_bytes(text, rule.replace)
        if len(raw) < limits.LONG_TEXT and threads is None:
            return encoder.one(raw, rule).view(Ids)
        from jittok.encode.threads.batch import encode_one

        return encode_one(encoder, raw, rule, threads).view(Ids)

    def encode_stream(
        self, texts: Texts, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, progress: Show = False, **others: NoReturn,
    ) -> Iterator[TokenArray]:  # fmt: skip
        """The rows of `encode_batch`, some at a time and in order: for corpora that do not fit into memory."""
        if others:
            refuse_keywords(self.encode_stream, others)
        from jittok.common.rows import TokenArray
        from jittok.encode.threads.batch import stretches

        meanwhile = self._rows_meanwhile(texts, add_special, parse_special, errors)
        if meanwhile is not None:
            yield meanwhile
            return
        encoder, rule = self._rule(add_special, parse_special, errors)
        few = self._few(encoder, texts, rule, threads, progress, add_special, parse_special, errors)
        if few is not None:
            yield few.described_by(None, self.pad_id).surrounded_by(*rule.around)
            return
        for ids, ends in stretches(encoder, texts, rule, threads, progress):
            rows = TokenArray(ids, np.concatenate([np.zeros(1, np.int64), ends]))
            yield rows.described_by(None, self.pad_id).surrounded_by(*rule.around)

    def encode_parts(
        self, text: OneText, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        **others: NoReturn,
    ) -> Iterator[Ids]:  # fmt: skip
        """The ids of one long text, some at a time and in order: the first come before all are known."""
        if others:
            refuse_keywords(self.encode_parts, others)
        from jittok.encode.threads.batch import parts_of_one

        encoder, rule = self._rule(add_special, parse_special, errors)
        return (ids.view(Ids) for ids in parts_of_one(encoder, to_bytes(text, rule.replace), rule))

    def encode_pair(
        self, first: OneText, second: OneText, *, add_special: bool = True, parse_special: bool = False,
        errors: Errors = "strict", **others: NoReturn,
    ) -> NDArray[np.int32]:  # fmt: skip
        """int32[n]: the ids of two texts as the file's template for pairs orders them; `add_special`: with its tokens.

        UnsupportedVocab with `add_special` for a GGUF vocabulary without a separator, so without such a template.
        """
        if others:
            refuse_keywords(self.encode_pair, others)
        ids = [self.encode(text, parse_special=parse_special, errors=errors) for text in (first, second)]
        if not add_special and not isinstance(self.vocab, Pipeline):
            return np.concatenate(ids)
        if isinstance(self.vocab, Vocab) and type_named(self.type).between(self.vocab) is None:
            self._pipeline("a template for pairs")
        pair = self.pipeline.pair
        parts = [ids[-1 - item] if item < 0 else [item] for item in pair if add_special or item < 0]
        return np.concatenate([np.asarray(part, np.int32) for part in parts])

    def count(
        self, text: OneText, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, **others: NoReturn,
    ) -> int:  # fmt: skip
        """How many ids `encode` gives."""
        if others:
            refuse_keywords(self.count, others)
        if not hasattr(text, "__len__") or len(text) < limits.LONG_TEXT:
            return self.encode(
                text, add_special=add_special, parse_special=parse_special, errors=errors, threads=threads
            ).size
        from jittok.encode.threads.batch import count_one

        encoder, rule = self._rule(add_special, parse_special, errors)
        return count_one(encoder, to_bytes(text, rule.replace), rule, threads)

    def count_batch(
        self, texts: Texts, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, progress: Show = False, **others: NoReturn,
    ) -> NDArray[np.int64]:  # fmt: skip
        """int64[n]: the lengths of the rows of `encode_batch`."""
        if others:
            refuse_keywords(self.count_batch, others)
        from jittok.encode.threads.batch import stretches

        meanwhile = self._rows_meanwhile(texts, add_special, parse_special, errors)
        if meanwhile is not None:
            return meanwhile.lengths
        encoder, rule = self._rule(add_special, parse_special, errors)
        few = self._few(encoder, texts, rule, threads, progress, add_special, parse_special, errors)
        if few is not None:
            return few.lengths
        parts = stretches(encoder, texts, rule, threads, progress, keep_ids=False)
        return np.concatenate([np.zeros(0, np.int64), *(np.diff(ends, prepend=0) for _, ends in parts)])

    def _few(
        self, encoder: Encoder, texts: Texts, rule: EncodeOptions, threads: Any, bar: Show, *asked: Any,
    ) -> TokenArray | None:  # fmt: skip
        from jittok.encode.short_text import encode_small_batch

        plain = not bar and (threads is None or (type(threads) is int and threads > 0))
        return encode_small_batch(encoder, self._builtins, texts, rule, asked) if plain else None

    def _meanwhile(
        self, texts: list[bytes], add_special: bool, parse_special: bool, replace: bool,
    ) -> list[NDArray[np.int32]] | None:  # fmt: skip
        """The ids of short texts by plain Python while kernels would have to be compiled; None where kernels are to
        encode them, from now on."""
        rows = None
        if is_cheap(sum(map(len, texts)) + COST_PER_TEXT * len(texts)) and self._lacks_kernels:
            rows = encode_batch_in_python(self.vocab, texts, bool(add_special), bool(parse_special), replace=replace)
        object.__setattr__(self, "_may_wait", rows is not None)  # past the check of names, as in a first `encode`
        return rows

    def _rows_meanwhile(self, texts: Any, add_special: bool, parse_special: bool, errors: str) -> TokenArray | None:
        """The same as a TokenArray, of texts as for `encode_batch`."""
        if not self._may_wait:
            return None
        replace = check_options(add_special, parse_special, errors)
        raw = short_texts(texts, replace)
        rows = None if raw is None else self._meanwhile(raw, add_special, parse_special, replace)
        if rows is None:
            self._may_wait = False
            return None
        from jittok.common.rows import TokenArray

        ends = np.cumsum([0, *(row.size for row in rows)])
        found = TokenArray(np.concatenate([np.zeros(0, np.int32), *rows]), ends)
        return found.surrounded_by(*around_rows(self.vocab, bool(add_special)))

    def _rule(self, add_special: bool, parse_special: bool, errors: str) -> tuple[Encoder, EncodeOptions]:
        try:
            return self._rules[add_special, parse_special, errors]
        except (KeyError, TypeError):  # TypeError: nothing that a dictionary can look up, but true or false
            pass
        replace_errors = check_options(add_special, parse_special, errors)
        encoder = self._encoder
        if encoder is None:
            found = self.vocab.model if isinstance(self.vocab, Vocab) else self.vocab.format
            raise UnsupportedVocab(self.vocab.source, "tokenizer.ggml.model", found, "a vocabulary that can tokenize")
        rule = encoder.rule(add_special, parse_special, replace_errors)
        return self._rules.setdefault((bool(add_special), bool(parse_special), errors), (encoder, rule))

    # ---- ids to text

    def decode(
        self, ids: ArrayLike | Iterable[int], *, errors: str = "replace", remove_special: bool = False,
        unparse_special: bool = False, skip_special: bool | None = None, clean: bool = True, **others: NoReturn,
    ) -> str:  # fmt: skip
        """The text of ids; `errors` as for bytes.decode, the rest as for `decode_bytes`."""
        if others:
            refuse_keywords(self.decode, others)
        if isinstance(self.vocab, Pipeline):
            ids = to_ids(ids, self.vocab_size)
            if self._general.cuts(ids).size:
                from jittok.common.rows import TokenArray

                rows = TokenArray(ids, np.array([0, ids.size]))
                how: dict[str, Any] = {
                    "remove_special": remove_special,
                    "unparse_special": unparse_special,
                    "clean": clean,
                }
                return self.decode_batch(rows, errors=errors, skip_special=skip_special, **how)[0]
        prints = self._prints_special(unparse_special, skip_special)
        many = (ids.size if isinstance(ids, np.ndarray) else isinstance(ids, Sized) and len(ids)) > IDS_PER_SLICE
        if many and type_named(self.type).has_tokens:
            from jittok.decode.slices import text_of_row

            ids = to_ids(ids, self.vocab_size)
            text = text_of_row(ids, errors, *self._decoding(remove_special, prints, clean), IDS_PER_SLICE)
            if text is not None:
                return text
        return self._decoded(ids, remove_special, prints, clean).decode("utf-8", errors)

    def decode_bytes(
        self, ids: ArrayLike | Iterable[int], *, remove_special: bool = False, unparse_special: bool = False,
        skip_special: bool | None = None, clean: bool = True, **others: NoReturn,
    ) -> bytes:  # fmt: skip
        """The bytes of ids, as llama.cpp's detokenize or the file's own decoder. Raises InvalidToken.

        `remove_special` drops what `add_special` has put around, `skip_special` the text of special tokens everywhere.
        Left out, it is as in the file's library: special tokens of a GGUF vocabulary print nothing unless
        `unparse_special` is set, those of other files print their text.

        `clean=False` keeps every space that the tokens have. By default a vocabulary that cleans (GPT-2's family and
        BERT's) loses spaces before ? ! . , and around apostrophes, as in llama.cpp: of ids that are cut and decoded
        part by part, too.
        """
        if others:
            refuse_keywords(self.decode_bytes, others)
        return bytes(self._decoded(ids, remove_special, self._prints_special(unparse_special, skip_special), clean))

    def decode_batch(
        self, rows: TokenArray | Iterable[ArrayLike], *, errors: str = "replace", remove_special: bool = False,
        unparse_special: bool = False, skip_special: bool | None = None, clean: bool = True, progress: Show = False,
        **others: NoReturn,
    ) -> list[str]:  # fmt: skip
        """The text of each row of a TokenArray (or of any rows of ids). `progress`: as for `encode_batch`."""
        if others:
            refuse_keywords(self.decode_batch, others)
        from jittok.common.rows import TokenArray
        from jittok.decode.slices import several, texts_of_rows

        if not type_named(self.type).has_tokens:
            return [""] * sum(1 for _ in rows)
        if not isinstance(rows, TokenArray):
            parts = [to_ids(row, self.vocab_size) for row in several(rows)]
            ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
            rows = TokenArray(ids, np.cumsum([0, *(part.size for part in parts)]))
        prints = self._prints_special(unparse_special, skip_special)
        cut = self._general.cut_rows(rows) if isinstance(self.vocab, Pipeline) else None
        if cut is not None:
            parts_of_rows, begins = cut
            decoding = self._decoding(remove_special, prints, clean)
            texts_of_parts = texts_of_rows(parts_of_rows, errors, *decoding, IDS_PER_SLICE, progress)
            return ["".join(texts_of_parts[first:last]) for first, last in pairwise(begins.tolist())]
        if self._text_may_wait:
            texts = decode_in_python(
                self.gguf("pieces"), rows, rows.ids.size + len(rows), remove_special, prints, clean
            )
            if texts is not None:
                return [part.decode("utf-8", errors) for part in texts]
            self._text_may_wait = False
        decoding = self._decoding(remove_special, prints, clean)
        try:
            return texts_of_rows(rows, errors, *decoding, IDS_PER_SLICE, progress)
        except UnicodeDecodeError:  # an id outside the vocabulary comes first, wherever it is
            return texts_of_rows(rows, errors, *decoding, rows.ids.size + 1)

    def stream_decoder(
        self, *, errors: str = "replace", remove_special: bool = False, unparse_special: bool = False,
        clean: bool = True, **others: NoReturn,
    ) -> StreamDecoder:  # fmt: skip
        """Text from ids one at a time; what `push` and `flush` give, joined, is what `decode` gives."""
        if others:
            refuse_keywords(self.stream_decoder, others)
        from jittok.decode.rows import frame_of
        from jittok.decode.stream import StreamDecoder

        if isinstance(self.vocab, Pipeline):
            general = self._general if clean else self._general_as_written
            return general.stream(errors, remove_special, self._prints_special(unparse_special, None))
        frame = frame_of(self.vocab, remove_special, unparse_special, clean)
        return StreamDecoder(lambda token: self.token_to_piece(token, special=unparse_special), frame, errors)

    def token_to_piece(self, id: int, *, lstrip: int = 0, special: bool = False) -> bytes:  # noqa: A002  llama.cpp's
        """What one id prints, without up to `lstrip` spaces before. Special tokens print nothing unless `special`."""
        token = self._checked(id)
        if isinstance(self.vocab, Pipeline):
            return b"" if not special and token in self.special_ids else self._general.piece(token, lstrip)
        if self._text_may_wait:
            plain = piece_in_python(self.gguf("pieces"), token, lstrip, bool(special))
            if plain is not None:
                return plain
            self._text_may_wait = False
        pieces = self._pieces
        if not special and pieces.hides(token):
            return b""
        piece = pieces.blob[pieces.offsets[token] : pieces.offsets[token + 1]].tobytes()
        while lstrip > 0 and piece[:1] == b" ":
            piece, lstrip = piece[1:], lstrip - 1
        return piece

    def _decoded(
        self, ids: ArrayLike | Iterable[int], remove_special: bool, prints: bool, clean: bool,
    ) -> bytes | bytearray:  # fmt: skip
        if not type_named(self.type).has_tokens:
            return b""
        known = to_ids(ids, self.vocab_size)
        if self._text_may_wait:
            texts = decode_in_python(self.gguf("pieces"), [known], known.size, remove_special, prints, clean)
            if texts is not None:
                return texts[0]
            self._text_may_wait = False
        decoder, frame = self._decoding(remove_special, prints, clean)
        return interruptible_if_long(known.nbytes)(decoder.one, known, frame)  # type: ignore[no-any-return]

    def _decoding(self, remove_special: bool, prints: bool, clean: bool) -> tuple[Decoder, DecodeFrame]:
        """What decodes, and how. `prints`: special tokens print their text."""
        if isinstance(self.vocab, Pipeline):
            general = self._general if clean else self._general_as_written
            return general, general.frame(remove_special, prints)  # type: ignore[return-value]
        return self._decoder, self._decoder.frame(remove_special, prints, clean)

    def _prints_special(self, unparse_special: bool, skip_special: bool | None) -> bool:
        if skip_special is not None:
            return not skip_special
        return unparse_special or (isinstance(self.vocab, Pipeline) and self.vocab.format != "tekken")

    @once
    def _decoder(self) -> Decoder:
        from jittok.decode.rows import Decoder

        return Decoder(self._vocab_as(Vocab), self._pieces)

    @once
    def _pieces(self) -> PieceTable:
        from jittok.decode.pieces import kept_pieces

        return kept_pieces(self._vocab_as(Vocab), self._key)

    @once
    def _general(self) -> ReferenceDecoder:
        from jittok.decode.reference_decoder import ReferenceDecoder

        return ReferenceDecoder(self._vocab_as(Pipeline))

    @once
    def _general_as_written(self) -> ReferenceDecoder:
        """The same, but spaces stay that the decoder's clean-up removes."""
        from jittok.decode.reference_decoder import ReferenceDecoder, as_written

        cleaning = self._general.vocab
        plain = as_written(cleaning)
        return self._general if plain is cleaning else ReferenceDecoder(plain)

    def _vocab_as(self, kind: type[Kind]) -> Kind:
        """The vocabulary, for a part that only this kind has: an AttributeError for others, so `hasattr` is False."""
        if not isinstance(self.vocab, kind):
            raise AttributeError(f"found a {type(self.vocab).__name__}, expected a {kind.__name__}")
        return self.vocab

    def _wait_for_kernels(self) -> None:
        """From now on the kernels are compiled, however little there is to do (see `encode.fallback.first_texts`)."""
        self._may_wait = self._text_may_wait = False

    # ---- spans and steps

    def align(
        self, text: OneText, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        **others: NoReturn,
    ) -> Alignment:  # fmt: skip
        """The ids of one text, and the span of bytes and of characters of each id. Raises as `encode`."""
        if others:
            refuse_keywords(self.align, others)
        from jittok.align import Alignment
        from jittok.encode.threads.batch import stretches

        encoder, rule = self._rule(add_special, parse_special, errors)
        raw = to_bytes(text, rule.replace)
        start, stop = (frozen([position], np.int64) for position in (0, len(raw)))
        docs = Documents(np.frombuffer(raw, np.uint8), start, stop)
        beside, apart = self._aligning(add_special, parse_special).spans, not isinstance(self.vocab, Pipeline)
        ((ids, _, spans),) = stretches(encoder, docs, rule, 1, extra_results=beside, chunked=apart)
        found = Alignment(frozen(ids, np.int32), spans, text if isinstance(text, str) else raw)
        return found.described_by(self.describe)

    def align_batch(
        self, texts: Texts, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, progress: Show = False, unit: Literal["bytes", "characters"] = "bytes",
        **others: NoReturn,
    ) -> AlignmentBatch:  # fmt: skip
        """The ids of many texts (as for `encode_batch`) and their spans, counted in "bytes" or in "characters"."""
        if others:
            refuse_keywords(self.align_batch, others)
        from jittok.align import UNITS, AlignmentBatch
        from jittok.encode.threads.batch import stretches

        if unit not in UNITS:
            raise ValueError(f"unit: found {unit!r}, expected 'bytes' or 'characters'")
        encoder, rule = self._rule(add_special, parse_special, errors)
        aligner = self._aligning(add_special, parse_special)
        beside = aligner.spans if unit == "bytes" else aligner.spans_in_characters
        apart = unit == "bytes" and not isinstance(self.vocab, Pipeline)
        found = stretches(encoder, texts, rule, threads, progress, extra_results=beside, chunked=apart)
        return AlignmentBatch.joined(found, unit)

    def _aligning(self, add_special: bool, parse_special: bool) -> Aligner | FileAligner:
        if isinstance(self.vocab, Pipeline):
            from jittok.align.files import FileAligner

            return FileAligner(self.vocab, bool(add_special), bool(parse_special))
        return self._aligner

    @once
    def _aligner(self) -> Aligner:
        from jittok.align import Aligner

        vocab, encoder = self._vocab_as(Vocab), self._encoder
        return Aligner(vocab, self._key, None if encoder is None else encoder.arrays)

    @property
    def pipeline(self) -> Pipeline:
        """The steps from text to ids and back, as data: llama.cpp's for a GGUF, else those of the file."""
        return self.vocab if isinstance(self.vocab, Pipeline) else self.vocab.pipeline

    @property
    def runs(self) -> str:
        """What encodes: "kernels", or "general path" and the steps that run in plain Python, exactly and slowly."""
        from jittok.encode.fallback.reference_encoder import ReferenceEncoder, steps_of

        if isinstance(self._encoder, ReferenceEncoder):
            return f"general path, plain Python: {', '.join(steps_of(self._encoder.vocab))}"
        return KERNELS

    def _pipeline(self, wanted: str) -> Pipeline:
        if not isinstance(self.vocab, Pipeline):
            raise UnsupportedVocab(self.vocab.source, "file", InWords("a GGUF vocabulary"), wanted)
        return self.vocab

    def gguf(self, what: str) -> Vocab:
        """The Vocab, for features that only exist for GGUF."""
        if isinstance(self.vocab, Pipeline):
            expected = f"a GGUF vocabulary: {what} of other files is not built yet"
            raise UnsupportedVocab(self.vocab.source, what, self.vocab.format, expected)
        return self.vocab

    # ---- facts; more are those of `Facts`

    @property
    def llama_cpp(self) -> str | None:
        """The release of llama.cpp whose answers these are: "b11739" for example; None for files of other libraries."""
        return self.vocab.llama_cpp if isinstance(self.vocab, Vocab) else None

    @property
    def asked_llama_cpp(self) -> str | None:
        """The release that was passed to the call; None if none was, so the newest is used."""
        return self._asked["llama_cpp"]  # type: ignore[no-any-return]

    @property
    def asked_pre(self) -> str | None:
        """The `pre` that was passed instead of the file's, or None."""
        return self._asked["pre"]  # type: ignore[no-any-return]

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.vocab)

    def __len__(self) -> int:
        return len(self.vocab)

    @once
    def special_ids(self) -> frozenset[int]:
        """Ids of control, unknown and user-defined tokens: all that can be found in a text as special tokens."""
        return frozenset(self.vocab.special_tokens.tolist())

    @once
    def nl_id(self) -> int | None:
        """The id of a newline, None when there is none."""
        if isinstance(self.vocab, Pipeline):
            ids = self.encode("\n")
            return int(ids[0]) if ids.size == 1 else None
        if self._may_wait and is_cheap(COST_PER_TEXT) and self._lacks_kernels:
            return or_none(newline_meanwhile(self.vocab))
        return or_none(newline_of(self.vocab, self._encoder))

    def id_to_token(self, id: int) -> bytes:  # noqa: A002
        """The text of one id as the vocabulary has it. Raises InvalidToken."""
        token = self._checked(id)
        return self.token_bytes[self.token_offsets[token] : self.token_offsets[token + 1]].tobytes()

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id of a token's text, None if there is none."""
        if isinstance(token, str):
            token = token.encode("utf-8", "surrogatepass")
        if not isinstance(token, bytes | bytearray | memoryview):  # bytes(5) are five zeros
            raise TypeError(f"token: found {type(token).__name__}, expected str or bytes")
        return self.vocab.ids.get(bytes(token))

    def _checked(self, token: int) -> int:
        if isinstance(token, bool) or not isinstance(token, int | np.integer):
            raise TypeError(f"id: found {type(token).__name__}, expected int")
        if not 0 <= token < self.vocab_size:
            raise InvalidToken(int(token), self.vocab_size)
        return int(token)

    @property
    def arrays(self) -> Any:
        """The compiled vocabulary to look at, a NamedTuple of arrays whose layout may change; None for type "none"."""
        return None if self._encoder is None else self._encoder.arrays

    def describe(self, ids: Iterable[int]) -> list[dict[str, Any]]:
        """A record for each id: piece, bytes, text, attributes, score, merge rank. Raises InvalidToken."""
        from jittok.vocab.describe import describe, described

        if isinstance(self.vocab, Pipeline):
            return [described(self.vocab, token, self._general.piece(self._checked(token))) for token in ids]
        return [describe(self.vocab, token, self.token_to_piece(token, special=True)) for token in ids]

    # ---- as a Python object

    def __repr__(self) -> str:
        pre = f", pre={self.pre!r}" if self.pre else ""
        return f"<jittok.Tokenizer {self.name or self.vocab.source!r}: {self.type}{pre}, {self.vocab_size} tokens>"

    if not TYPE_CHECKING:  # a checker tells that it is not callable

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise a TypeError with a hint: tokenizers of transformers are called, those of jittok are not."""
            raise TypeError("a jittok.Tokenizer is not callable: write tok.encode(text) or tok.encode_batch(texts)")

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._again is not None:
            return self._again(self)
        state = self.vocab._asdict(), {**self._options, **self._asked}, isinstance(self.vocab, Pipeline)
        return rebuild, (state if type(self) is Tokenizer else (*state, type(self))), own_of(self, Tokenizer)

    def _read_as(self) -> dict[str, Any]:
        """How to read the vocabulary again, so that a jittok that knows later releases gives the same answers."""
        if isinstance(self.vocab, Pipeline):
            return self._file_options
        return {**self._asked, "llama_cpp": self.llama_cpp}


ReloadRecipe = Callable[[Tokenizer], tuple[Any, ...]]
"""The result of `__reduce__` for a tokenizer that can be loaded again, so need not be pickled whole: see `loading`."""


def rebuild(state: dict[str, Any], options: dict[str, Any], other: bool = False, kind: Any = None) -> Tokenizer:
    """Unpickle a tokenizer that came from memory; `kind`: a derived class, whose constructor arguments are unknown."""
    made: Tokenizer = Tokenizer.__new__(kind or Tokenizer)
    Tokenizer.__init__(made, read_only(Pipeline if other else Vocab, state), **options)
    return made
