"""The page as a widget of a notebook: `tok.explore(text)`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.common.display.tokens import chips
from jittok.errors import missing
from jittok.play.answers import Session

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from jittok.tokenizer import Tokenizer

HERE = Path(__file__).parent


def explore(tok: Tokenizer, text: str, name: str) -> AnyWidget:
    """A widget that shows a text's tokens as one types. A notebook that is saved keeps a picture of the first text.

    ImportError without the extra `notebook`.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise missing("tok.explore", "anywidget", "notebook") from None
    session = Session({name: tok})
    first = text

    class Explorer(anywidget.AnyWidget):
        """The page; questions and answers are messages."""

        _esm, _css = HERE / "page.js", HERE / "page.css"
        names = traitlets.List(session.names()).tag(sync=True)
        text = traitlets.Unicode(first).tag(sync=True)

        def __init__(self) -> None:
            super().__init__()
            self.on_msg(self._asked)

        def _asked(self, _widget: Any, question: dict[str, Any], _buffers: Any) -> None:
            self.send({"number": question.get("number"), "answer": session.answer(question)})

        def _repr_mimebundle_(self, **options: Any) -> Any:
            """The widget, and the tokens of its first text as HTML for pages that run no widgets."""
            made = super()._repr_mimebundle_(**options)
            data, metadata = made if isinstance(made, tuple) else (made, {})
            ids = tok.encode(first, errors="replace").tolist()
            return {**(data or {}), "text/html": chips(tok.describe(ids))}, metadata

    return Explorer()
