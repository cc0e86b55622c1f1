"""What a Tokenizer has for files other than GGUF, and what it has for GGUF alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.errors import InWords, UnsupportedVocab, refuse_keywords
from jittok.kernels.inputs import Errors, OneText
from jittok.vocab import Vocab
from jittok.vocab.facts import Facts

if TYPE_CHECKING:
    from jittok.decode.reference_decoder import ReferenceDecoder

KERNELS = "kernels"
"""Value of `Tokenizer.runs` for a vocabulary that compiled code encodes."""


class OtherFiles(Facts):
    """The part of `Tokenizer` that asks which kind of file it is of."""

    _encoder: Any
    encode: Any

    def encode_pair(
        self,
        first: OneText,
        second: OneText,
        *,
        add_special: bool = True,
        parse_special: bool = False,
        errors: Errors = "strict",
        **others: NoReturn,
    ) -> NDArray[np.int32]:
        """int32[n]: the ids of two texts as the file's template for pairs orders them; `add_special`: with its tokens.

        A GGUF vocabulary has no such template: UnsupportedVocab with `add_special`.
        """
        if others:
            refuse_keywords(self.encode_pair, others)
        ids = [self.encode(text, parse_special=parse_special, errors=errors) for text in (first, second)]
        if not add_special and not isinstance(self.vocab, Pipeline):
            return np.concatenate(ids)
        pair = self._pipeline("a template for pairs").pair
        parts = [ids[-1 - item] if item < 0 else [item] for item in pair if add_special or item < 0]
        return np.concatenate([np.asarray(part, np.int32) for part in parts])

    @property
    def pipeline(self) -> Pipeline:
        """The steps from text to ids and back, as data: llama.cpp's for a GGUF, else those of the file."""
        return self.vocab if isinstance(self.vocab, Pipeline) else self.vocab.pipeline

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

    def _prints_special(self, unparse_special: bool, skip_special: bool | None) -> bool:
        if skip_special is not None:
            return not skip_special
        return unparse_special or (isinstance(self.vocab, Pipeline) and self.vocab.format != "tekken")

    @once
    def _general(self) -> ReferenceDecoder:
        from jittok.decode.reference_decoder import ReferenceDecoder

        return ReferenceDecoder(self._pipeline("the decoder of a file"))

    @once
    def _general_as_written(self) -> ReferenceDecoder:
        """The same, but spaces stay that the decoder's clean-up removes."""
        from jittok.decode.reference_decoder import ReferenceDecoder, as_written

        cleaning = self._general.vocab
        plain = as_written(cleaning)
        return self._general if plain is cleaning else ReferenceDecoder(plain)

    @property
    def runs(self) -> str:
        """What encodes: "kernels", or "general path" and the steps that run in plain Python, exactly and slowly."""
        from jittok.encode.reference_encoder import ReferenceEncoder, steps_of

        if isinstance(self._encoder, ReferenceEncoder):
            return f"general path, plain Python: {', '.join(steps_of(self._encoder.vocab))}"
        return KERNELS
