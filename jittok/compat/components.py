"""Components of a `tokenizers.Tokenizer` that programs look at by class name, or call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Pieces
from jittok.common.pipeline.steps import Spaced
from jittok.compat.missing import Missing
from jittok.reference.pipeline import runner
from jittok.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jittok.compat.tokenizers import Backend

MODELS = {"bpe": "BPE", "spm": "BPE", "wpm": "WordPiece", "ugm": "Unigram", "words": "WordLevel"}
"""Types of vocabularies -> tokenizers' classes of models."""
STEPS = "write tok.explain() for the steps, tok.trace(text) for what each does"


class Component:
    """A component; its class has the name of the one in tokenizers."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._backend!r}>"


class Normalizer(Component):
    """The normalizers of a file."""

    normalize = Missing(STEPS)

    def normalize_str(self, sequence: str) -> str:
        """A text after all normalizers."""
        return runner(self._backend._tok.pipeline).normalized(sequence)


class PreTokenizer(Component):
    """The splitters of a file."""

    pre_tokenize = Missing(STEPS)

    def pre_tokenize_str(self, sequence: str) -> list[tuple[str, tuple[int, int]]]:
        """The pre-tokens of a normalized text, and the span of each in characters."""
        found = runner(self._backend._tok.pipeline).pre_tokens(sequence)
        return [(word.text, (places[0], places[-1] + 1)) for word in found if (places := word.positions)]


class Decoder(Component):
    """The decoder of a file."""

    def decode(self, tokens: Sequence[str]) -> str:
        """The text of names of tokens."""
        backend = self._backend
        ids = [backend._ids[name] for name in tokens if name in backend._ids]
        if len(ids) != len(tokens) and isinstance(backend._tok.vocab, Pipeline):
            return "".join(runner(backend._tok.vocab).decoded(list(tokens)))
        return backend.decode(ids, False)


class PostProcessor(Component):
    """The template of a file."""

    process = Missing("write backend.post_process(encoding, pair)")

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """How many ids the template puts around one text, or around two."""
        return self._backend.num_special_tokens_to_add(is_pair)


class Model(Component):
    """The model."""

    train = get_trainer = Missing("write jittok.train(texts, ...)")

    def token_to_id(self, token: str) -> int | None:
        """The id of a name."""
        return self._backend.token_to_id(token)

    def id_to_token(self, id: int) -> str | None:  # noqa: A002
        """The name of an id."""
        return self._backend.id_to_token(id)

    def tokenize(self, sequence: str) -> list[ModelToken]:
        """The tokens of a pre-token."""
        pipeline = self._backend._tok.pipeline
        parts = runner(pipeline).word(sequence)
        return [ModelToken(token, self._backend._names[token], (start, stop)) for token, start, stop in parts]


class ModelToken:
    """A token of a pre-token: `id`, `value`, `offsets` in bytes."""

    def __init__(self, id: int, value: str, offsets: tuple[int, int]) -> None:  # noqa: A002
        self.id, self.value, self.offsets = id, value, offsets

    def as_tuple(self) -> tuple[int, str, tuple[int, int]]:
        """All three."""
        return self.id, self.value, self.offsets


def components(tok: Tokenizer, backend: Backend) -> dict[str, Component | None]:
    """The components of a backend by name; None for those that a file does not have, or that are llama.cpp's."""
    own = isinstance(tok.vocab, Pipeline) and not isinstance(tok.vocab.model, Pieces)
    kinds: dict[str, Any] = {
        "normalizer": Normalizer if own and tok.pipeline.normalize else None,
        "pre_tokenizer": PreTokenizer if own and tok.pipeline.split else None,
        "model": type(MODELS.get(tok.type, "BPE"), (Model,), {}),
        "decoder": None if tok.pipeline.decode == (Spaced(),) else Decoder,
        "post_processor": PostProcessor,
    }
    return {name: None if kind is None else kind(backend) for name, kind in kinds.items()}
