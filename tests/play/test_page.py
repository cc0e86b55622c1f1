"""The page in a real browser: typing, paste, drop, switching, keyboard, dark, a phone's width."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.play.still import still_page

pytestmark = pytest.mark.process


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page, drawn; anything that a browser complains about fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    made = context.new_page()
    complaints: list[str] = []
    made.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.goto(address)
    made.locator("[data-drawn]").wait_for()
    yield made
    context.close()
    assert not complaints


def ids(page: Any, side: int = 0) -> list[int]:
    labels = page.locator(".tokens").nth(side).locator("[role=option]").evaluate_all("all => all.map(e => e.ariaLabel)")
    return [int(label.rpartition("id ")[2]) for label in labels]


def drawn(page: Any, text: str, side: int = 0, vocab: str = "gpt-2") -> None:
    """Wait until the tokens of a text are drawn."""
    from playwright.sync_api import expect

    wanted = jittok.bundled(vocab).encode(text).tolist()
    expect(page.locator(".tokens").nth(side).locator("[role=option]")).to_have_count(len(wanted))
    assert ids(page, side) == wanted


def test_tokens_follow_the_typing(page: Any) -> None:
    page.locator("textarea").fill("")
    page.locator("textarea").press_sequentially("Hello, wörld 東京\n\tx")
    drawn(page, "Hello, wörld 東京\n\tx")
    assert "13 characters" not in page.locator("section p").first.inner_text()
    assert "characters" in page.locator("section p").first.inner_text()


def test_two_vocabularies_stand_side_by_side(page: Any) -> None:
    page.get_by_label("compare with").select_option("t5")
    page.locator("textarea").fill("incompatible nightmares")
    drawn(page, "incompatible nightmares")
    drawn(page, "incompatible nightmares", 1, "t5")
    assert page.locator(".other").count() > 0
    page.get_by_label("vocabulary", exact=True).select_option("t5")
    page.get_by_label("compare with").select_option("")
    drawn(page, "incompatible nightmares", 0, "t5")


def test_special_tokens_are_text_until_they_are_asked_for(page: Any) -> None:
    page.locator("textarea").fill("<|endoftext|>")
    drawn(page, "<|endoftext|>")
    page.get_by_label("control tokens in the text are parsed").check()
    page.locator(".special").wait_for()
    assert ids(page) == [50256]


def test_the_keyboard_goes_through_tokens_and_says_what_they_are(page: Any) -> None:
    page.locator("textarea").fill("one incompatible three")
    drawn(page, "one incompatible three")
    box = page.locator(".tokens")
    box.focus()
    box.press("ArrowRight")
    assert page.locator("output").inner_text().startswith("token 1 of")
    box.press("End")
    chosen = page.locator("[aria-selected=true]")
    assert chosen.count() == 1
    assert "three" in (chosen.get_attribute("aria-label") or "")
    box.press("ArrowLeft")
    box.press("Home")
    assert "id 505" in page.locator("output").inner_text()


def test_a_word_shows_its_merges(page: Any) -> None:
    page.locator("textarea").fill("an incompatible one")
    drawn(page, "an incompatible one")
    page.locator("[role=option]").nth(1).click()
    frame = page.locator(".word iframe").first
    frame.wait_for()
    assert page.locator(".word h2").first.inner_text() == 'How " incompatible" came to be in gpt-2'
    assert "merges" in page.frame_locator(".word iframe").first.locator("body").inner_text()


def test_a_megabyte_is_counted_and_leaves_the_page_alive(page: Any) -> None:
    text = "some words of a long text\n" * 40_000
    page.evaluate(
        "text => { const data = new DataTransfer(); data.setData('text/plain', text);"
        "const event = new ClipboardEvent('paste', { clipboardData: data, cancelable: true });"
        "document.querySelector('textarea').dispatchEvent(event); }",
        text,
    )
    count = jittok.bundled("gpt-2").count(text)
    page.get_by_text(f"{count:,} tokens").wait_for()
    assert page.locator("textarea").input_value() == ""
    page.locator("textarea").fill("short")
    drawn(page, "short")


def dropped(page: Any, name: str, content: bytes) -> None:
    page.evaluate(
        "([name, content]) => { const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0));"
        "const data = new DataTransfer(); data.items.add(new File([bytes], name)); document.querySelector('textarea')"
        ".dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true })); }",
        [name, base64.b64encode(content).decode()],
    )


def test_files_are_dropped(page: Any) -> None:
    from jittok.vocab.bundled import bundled_source

    dropped(page, "notes.txt", "dropped wörds".encode())
    drawn(page, "dropped wörds")
    dropped(page, "own.gguf", bundled_source("mistral"))
    page.get_by_text("own.gguf is here").wait_for()
    drawn(page, "dropped wörds", 0, "mistral")
    dropped(page, "broken.gguf", b"GGUF")
    page.get_by_text("expected").first.wait_for()


def test_a_chat_needs_a_template(page: Any) -> None:
    page.get_by_role("button", name="chat").click()
    page.locator(".wrong").first.wait_for()
    page.get_by_role("button", name="chat").click()
    page.locator(".tokens").first.wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1200, "dark")])
def test_nothing_scrolls_sideways_and_the_page_obeys_dark(width: int, scheme: str, browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    made = context.new_page()
    made.goto(address)
    made.get_by_label("compare with").select_option("t5")
    made.locator("textarea").fill("a text " + "x" * 300)
    made.locator(".tokens").nth(1).wait_for()
    assert made.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    color = made.evaluate("getComputedStyle(document.querySelector('main')).backgroundColor")
    assert (color == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()


def test_a_wrong_key_gets_nothing(browser: Any, address: str) -> None:
    context = browser.new_context()
    made = context.new_page()
    assert made.goto(address.partition("key=")[0] + "key=wrong").status == 403
    context.close()


def test_a_saved_page_works_without_a_server(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        still_page({"gpt-2": jittok.bundled("gpt-2"), "t5": jittok.bundled("t5")}, "an incompatible one"), "utf-8"
    )
    context = browser.new_context(offline=True)
    made = context.new_page()
    complaints: list[str] = []
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on(
        "request",
        lambda request: (
            complaints.append(request.url) if not request.url.startswith(("file:", "data:", "about:")) else None
        ),
    )
    made.goto(path.as_uri())
    made.locator("[data-drawn]").wait_for()
    drawn(made, "an incompatible one")
    made.locator("[role=option]").nth(2).click()
    made.locator(".word iframe").first.wait_for()
    assert not complaints
    context.close()
