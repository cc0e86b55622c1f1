"""Templates that others wrote: the sandbox, its bounds, steps that would lose the origin of a text, lines of errors."""

from typing import Any

import pytest

from jittok.chat.templates import environment, marked
from jittok.chat.templates.environment import compiled
from jittok.chat.templates.rendering import chat_of, render_marked, render_plain
from jittok.errors import MarksLost, TemplateError

DOUBLING = "{% set ns = namespace(a='aaaa') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}"
HELLO = [{"role": "user", "content": "Hello <b>"}]


def chat(messages: Any = HELLO, **variables: Any) -> Any:
    return chat_of(messages, None, None, False, False, None, {}, variables)


def both(template: str, **variables: Any) -> str:
    """The text of a template, the same in both environments."""
    made = compiled(template)
    text = render_marked(made, chat(**variables)).text
    assert text == render_plain(made, chat(**variables))
    return text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ messages[0].content | upper }}", "HELLO <B>"),
        ("{{ messages[0]['content'].split(' ')[-1] ~ 1 ~ none }}", "<b>1None"),
        ("{% set x %}[{{ messages[0].content }}]{% endset %}{{ x | length }}{{ x }}", "11[Hello <b>]"),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(messages[0].content) + '!' }}", "<Hello <b>>!"),
        ("{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ messages[0].role }}{% endcall %}", "<user>"),
        ("{% filter upper %}a{{ messages[0].content }}{% endfilter %}", "AHELLO <B>"),
        ("{{ messages[0].content | replace('l', 'L') | trim | title }}", "Hello <B>"),
        ("{{ [messages[0].content, 'x'] | join('-') }}", "Hello <b>-x"),
        ("{{ ('a\nb' ~ messages[0].content) | indent(2) }}", "a\n  bHello <b>"),
        ("{{ messages[0] }}", "{'role': 'user', 'content': 'Hello <b>'}"),
        ("{{ messages | tojson(indent=1) }}", '[\n {\n  "role": "user",\n  "content": "Hello <b>"\n }\n]'),
        ("{{ messages[0].content | safe + '<' }}", "Hello <b>&lt;"),
        ("{{ messages[0].content | escape }}", "Hello &lt;b&gt;"),
        ("{{ ', '.join([messages[0].content]) ~ 'a'.replace('a', messages[0].content) }}", "Hello <b>Hello <b>"),
        ("{% for c in messages[0].content %}{{ loop.index }}{% if loop.last %}.{% endif %}{% endfor %}", "123456789."),
        ("{% for m in messages if m.role == 'user' %}{{ loop.length }}{% else %}none{% endfor %}", "1"),
        ("{{ 1 + 2 }}{{ [1] + [2] }}{{ 'a' + 'b' + messages[0].role }}", "3[1, 2]abuser"),
        ("{{ messages[0].nothing }}{{ messages[0].get('nothing', 'x') }}", "x"),
        ("{{ messages[0].content.runs is defined }}", "False"),
        ("{% set ns = namespace(a='') %}{% set ns.a = ns.a + messages[0].content %}{{ ns.a }}", "Hello <b>"),
        ("{{ dict(a=1) }}{{ messages[0].content is string }}{{ 'H' in messages[0].content }}", "{'a': 1}TrueTrue"),
        ("{{ word | first }}{{ word | last }}{{ word | reverse }}{{ word | capitalize }}", "xyyx Xy"),
    ],
)  # fmt: skip
def test_what_keeps_the_origin_of_texts_gives_the_ordinary_text(template: str, text: str) -> None:
    assert both(template, word="xy").replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("template", "step"),
    [
        ("{{ messages[0].content | center(20) }}", "filter center"),
        ("{{ 'a%s' | format(messages[0].content) }}", "filter format"),
        ("{{ messages[0].content | wordwrap(3) }}", "filter wordwrap"),
        ("{{ messages[0].content | urlencode }}", "filter urlencode"),
        ("{{ messages[0].content | striptags }}", "filter striptags"),
        ("{{ messages | pprint }}", "filter pprint"),
        ("{{ {'a': messages[0].content} | xmlattr }}", "filter xmlattr"),
        ("{{ '%s' % messages[0].content }}", "% with a text"),
        ("{{ '{}'.format(messages[0].content) }}", "str.format"),
        ("{{ messages[0].content.format() }}", "str.format"),
        ("{{ messages[0].content.center(20) }}", "str.center"),
        ("{{ messages[0].content.swapcase() }}", "str.swapcase"),
        ("{{ 'ab'.ljust(9, messages[0].content[0]) }}", "str.ljust"),
        ("{{ messages[0].content.encode() }}", "str.encode"),
    ],
)
def test_a_step_that_would_lose_it_is_an_error_that_names_it(template: str, step: str) -> None:
    with pytest.raises(MarksLost, match=step):
        render_marked(compiled(template), chat())


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps of loops"),
        ("{% macro m(n) %}{% if n %}{{ m(n - 1) ~ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}", "steps of loops"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deep"),
        ("{{ 'a' * 999999999 }}", "a text of 999,999,999 characters"),
        ("{{ messages[0].content * 99999999 }}", "characters"),
        (DOUBLING, "characters"),
        (DOUBLING.replace("+", "~"), "characters"),
        ("{{ 'a'.center(999999999) }}", "characters"),
        ("{{ 'a' | center(999999999) }}", "characters"),
        ("{{ 'a' | indent(999999999, true) }}", "characters"),
        ("{{ '%999999999d' % 1 }}", "wide field"),
        ("{{ 9 ** 99999 }}", "a power"),
        ("{{ [0] * 999999999 }}", "characters"),
        ("{{ range(9999999) }}", "Range too big"),
        ("{{ [1] | batch(999999999, 'x') | list }}", "characters"),
        ("{{ 1.5 | round(999999999, 'ceil') }}", "round"),
        ("{{ messages | tojson(indent=999999) }}", "tojson"),
        ("{{ '{:>999999999}'.format('a') }}", "wide field"),
        ("{{ '{:{}}'.format('a', 999999999) }}", "characters"),
        ("{{ ('a' * 9999) | replace('a', 'b' * 9999) }}", "characters"),
        ("{{ ('a' * 9999).replace('a', 'b' * 9999) }}", "characters"),
        ("{{ ('a' * 9999).join('b' * 9999) }}", "characters"),
        ("{{ (['a' * 9999] * 999) | join }}", "characters"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("marking", [False, True])
def test_a_template_that_takes_too_much_is_an_error(
    template: str, words: str, marking: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "MOST_STEPS", 100_000)
    monkeypatch.setattr(marked, "MOST_CHARACTERS", 1 << 20)
    render = render_marked if marking else render_plain
    with pytest.raises(TemplateError, match=words):
        render(compiled(template), chat())


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages[0].__init__.__globals__ }}",
        "{{ namespace(_a=1) }}",
        "{{ messages[0].content.__class__('x') }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% set messages[0].role = 'system' %}",
        "{{ raise_exception('No tools.') }}",
    ],
)
def test_a_template_cannot_leave_the_sandbox(template: str) -> None:
    for render in (render_plain, render_marked):
        with pytest.raises(TemplateError):
            render(compiled(template), chat())


@pytest.mark.parametrize("template", ["{% if %}", "{{ 'a' | nothing }}", "{% generation %}a", "{{ (((( }}"])
def test_a_template_that_is_none_is_an_error(template: str) -> None:
    with pytest.raises(TemplateError, match="line 2") as found:
        compiled("\n" + template)
    assert found.value.line == 2


def test_the_line_of_a_template_that_refuses_a_chat_is_named() -> None:
    with pytest.raises(TemplateError, match="line 3: found No tools") as found:
        render_plain(compiled("a\n{% if true %}\n{{ raise_exception('No tools') }}\n{% endif %}"), chat())
    assert found.value.line == 3


def test_renderings_of_threads_have_their_own_clock() -> None:
    import datetime
    from concurrent.futures import ThreadPoolExecutor

    template = compiled("{% for i in range(200) %}{{ strftime_now('%Y') }}{% endfor %}")

    def render(year: int) -> str:
        now = datetime.datetime(year, 1, 1)
        return render_plain(template, chat_of(HELLO, None, None, False, False, now, {}, {}))

    with ThreadPoolExecutor(4) as pool:
        years = [*range(2000, 2040)]
        assert [*pool.map(render, years)] == [str(year) * 200 for year in years]
