"""Where pieces of texts end: a kernel that asks for counts of ids, many texts at a time.

`advance` takes the numbers of ids of the texts it asked for, moves every chain (the pieces of one text, each of which
begins where the one before ended) as far as they lead, and asks for the next ones. The caller encodes these as texts
of their own: what a piece has alone is all that counts. They lie in the text itself; nothing is copied.

A search goes from a fixed place in one direction: forward to the last boundary whose text has at most `most` ids, back
to the first. Boundaries are those of grapheme clusters, of characters where one cluster has more ids. It knows

- *low*: a place where the text ends with at most `most` ids, and *high*: one where it has more, both between characters
  that no token holds together (`adjacent`). No boundary beyond high fits, as a text beyond such a place has at least as
  many ids as what is before it; so the answer is between them. GUESS asks for one place by the bytes that an id had so
  far, NARROW for eight in between at a time, until no such place is left; LIST asks for the boundaries between the two
  from the far end, and the first that fits is the answer.
- an *anchor*: such a place some way before. What is asked for then begins there. Its ids differ from those of the piece
  before the next such place only, so both counts differ by the same number, `offset`, wherever they end. It is measured
  once, at a place where the whole count is known. Where ids depend on sums of scores from the start of a text, which
  are rounded, the count at the end of the search is checked, and a wrong one is searched for again without an anchor.
- *sizes*: where steps do not change the text, tokens cover known numbers of bytes, and the ids of a text that is a
  little too long tell low and high at once.

Where no such place is near (a run of one letter, of digits), counts of a text's beginnings rise and fall, but the last
token of each leaves a beginning that is shorter by that token and has one id less. So if no place in the last `reach`
bytes, the length of the longest token, fits, nothing beyond does. GALLOP and HALVE find a place where counts pass
`most`, SCAN goes on from there until `reach` bytes do not fit. A piece then costs a number of texts that its vocabulary
bounds, whatever the length of the text.
"""

from __future__ import annotations

from jittok.chunks.texts.adjacent import Adjacent, open_adjacent
from jittok.chunks.texts.search.chains import (
    Answers,
    Chains,
    CutOptions,
    Questions,
    get,
    open_sections,
    put,
    raw_answer,
)
from jittok.chunks.texts.search.ends import begin_piece, checked, liked
from jittok.chunks.texts.search.joining import begin_joined, joined, words_counted
from jittok.chunks.texts.search.narrowing import ask_all, guessed, listed, narrowed
from jittok.chunks.texts.search.runs import halved, scanned
from jittok.chunks.texts.search.sections import Sections
from jittok.chunks.texts.search.state import (
    BEGIN,
    CHECK,
    COUNT,
    CURSOR,
    DONE,
    EXPECTED_OFFSET,
    FIELDS,
    GALLOP,
    GUESS,
    HALVE,
    JOIN,
    LIKED,
    LIST,
    MEASURES,
    NARROW,
    OFFSET,
    PHASE,
    PIECE,
    SCAN,
    WHOLE_COUNT,
    WORDS,
)  # fmt: skip
from jittok.kernels.jit import I64, U8, U64, OutI64, helper, kernel
from jittok.kernels.memory import get_i64, put_i64, window


@kernel
def advance(
    found: Adjacent, options: CutOptions, data: U8, bits: U64, liked: I64, sections: Sections, state: OutI64,
    answers: Answers, questions: Questions, pieces: OutI64, made: OutI64,
) -> int:  # fmt: skip
    """Move all chains on by the answers to their questions, and ask more. Returns the number of questions; 0: all are
    DONE or STUCK.

    bits: boundaries of clusters in data, as `mark_clusters` makes them; liked: int64[n] places where pieces like to
    end, rising within a text. state: int64[FIELDS * chains]. questions: of AT_ONCE * chains. pieces: int64[PIECE * n]
    receives pieces (chain, start, stop, count) from made[0] on, which grows; there is room for one a chain.
    made[1:3]: bytes of so many ids, of the last text of any chain. made[3]: 1 if `pieces` is full; the next call goes
    on.
    """
    own = Chains(
        open_adjacent(found), found.reach, window(data), window(bits), window(liked), window(state),
        window(answers.ids), window(answers.ends), window(answers.sizes), window(questions.starts),
        window(questions.stops), window(questions.kinds), open_sections(sections), window(pieces), window(made),
        options.most, options.overlap, options.once, options.ids_before,
        options.ids_after, options.prefix, options.exact, options.rounds,
    )  # fmt: skip
    asked, chains, room = 0, state.size // FIELDS, pieces.size // PIECE
    put_i64(own.made, 3, 0)
    for k in range(chains):
        s = FIELDS * k
        if get_i64(own.state, s + PHASE) >= DONE:
            continue
        put_i64(own.state, s + CURSOR, asked)
        while True:
            move(own, s)
            if get_i64(own.state, s + COUNT) > 0 or get_i64(own.state, s + PHASE) >= DONE:
                break
            if get_i64(own.made, 0) + chains - k > room:  # those after it need room for one each
                put_i64(own.made, 3, 1)
                break
        asked += get_i64(own.state, s + COUNT)
    return asked


@helper
def move(own: Chains, s: int) -> None:
    """Read the answers to the questions of a chain, if it has asked any, and go on to the next ones."""
    phase = get_i64(own.state, s + PHASE)
    measured = get(own, s, MEASURES)
    if measured != 0:  # the first answer tells what all others from the anchor differ by
        offset, expected = get(own, s, WHOLE_COUNT) - raw_answer(own, s, 0), get(own, s, EXPECTED_OFFSET)
        put(own, s, OFFSET, offset)
        put(own, s, MEASURES, 0)
        if expected >= 0 and offset != expected:
            ask_all(own, s)
            return
    if phase == BEGIN:
        if not begin_joined(own, s):
            begin_piece(own, s)
    elif phase == JOIN:
        joined(own, s)
    elif phase == WORDS:
        words_counted(own, s)
    elif phase == GUESS:
        guessed(own, s)
    elif phase == NARROW:
        narrowed(own, s, measured)
    elif phase == LIST:
        listed(own, s, measured)
    elif phase in (GALLOP, HALVE):
        halved(own, s, measured)
    elif phase == SCAN:
        scanned(own, s, measured)
    elif phase == LIKED:
        liked(own, s)
    elif phase == CHECK:
        checked(own, s)
