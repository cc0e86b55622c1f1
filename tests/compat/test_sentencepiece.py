"""`as_sentencepiece` answers as `SentencePieceProcessor`. Some cases are sentencepiece's own tests in our words."""

import pickle
import random

import pytest

import jittok
from jittok.compat import as_sentencepiece

spm = pytest.importorskip("sentencepiece")
if tuple(map(int, spm.__version__.split(".")[:3])) < (0, 2, 3):
    pytest.skip("errors and options changed in sentencepiece 0.2.3", allow_module_level=True)

NAMES = ["spm-test-ja", "mistral-v1", "t5-spm"]


@pytest.fixture(scope="module", params=NAMES)
def both(request, files):
    path = files(request.param)
    return as_sentencepiece(jittok.load(path, cache=False)), spm.SentencePieceProcessor(model_file=str(path))


CALLS = [
    'sp.encode("hello world")', 'sp.encode(b"hello world", out_type=str)', 'sp.encode("hello 藤𓀀", out_type=str)',
    'sp.encode("hello 𓀀", out_type=str, emit_unk_piece=True)', 'sp.encode("hello 𓀀", emit_unk_piece=True)',
    'sp.encode("a b", out_type="numpy").tolist()',
    '[r.tolist() for r in sp.encode(["a", "b c"], out_type="numpy")]', 'sp.encode("a b c", add_bos=True)',
    'sp.encode("a b c", add_eos=True)', 'sp.encode("a b c", reverse=True)',
    'sp.encode("a b c", out_type=str, add_eos=True, reverse=True)', 'sp.encode(["a"], out_type=bytes)',
    'sp.encode([])', 'sp.encode("")', 'sp.encode("", out_type=str)', 'sp.encode(["", "a"])', 'sp.encode(None)',
    'sp.encode(3)', 'sp.encode(["a", 3])', 'sp.encode(("a", "b"))', 'sp.encode("\\ud800")',
    'sp.encode("a", out_type=float)', 'sp.encode("a", out_type=int, return_type=str)', 'sp.encode("a", no_such=1)',
    'sp.encode("a", num_threads="2")', 'sp.encode(["a b", "c"], num_threads=2)',
    'sp.encode_as_ids("hi", add_eos=True)', 'sp.EncodeAsPieces(["hi", "a"])', 'sp.decode([5, 6, 7])',
    'sp.decode([])', 'sp.decode([[]])', 'sp.decode(5)', 'sp.decode("▁he")', 'sp.decode("hello")',
    'sp.decode([[5, 6], [7]])', 'sp.decode([["▁a"], ["x"]])', 'sp.decode([5], out_type=bytes)',
    'sp.decode([10**6])', 'sp.decode([-1])', 'sp.decode(None)', 'sp.decode([5, "a"])', 'sp.decode([sp.unk_id()])',
    'sp.decode([5], out_type=int)', 'sp.decode([sp.id_to_piece(sp.unk_id())])', 'sp.decode(["▁x▁y𓀀", "▁a"])',
    'sp.decode(["x▁𓀀", "▁a"])', 'sp.decode((5, 6))', 'sp.decode(["▁a", "𓀀", "▁a"])',
    'sp.decode(__import__("numpy").array([5, 6]))', 'sp.decode([1.5])', 'sp.id_to_piece(5)',
    'sp.id_to_piece([1, 2])', 'sp.id_to_piece(10**6)', 'sp.id_to_piece(-1)', 'sp.id_to_piece([])',
    'sp.piece_to_id("▁a")', 'sp.piece_to_id(["▁a", "no such"])', 'sp.piece_to_id(b"a")', 'sp.piece_to_id(3)',
    'sp["▁a"]', 'round(sp.get_score(300), 4)', 'len(sp.GetScore([5, 6]))', 'sp.is_unknown([0, 5])',
    'sp.is_control([0, 1, 2])', 'sp.is_unused(300)', 'sp.is_byte([3, 300])', 'sp.is_byte(10**6)', 'len(sp)',
    'sp.vocab_size()', 'sp.GetPieceSize()', 'sp.piece_size()',
    '[sp.unk_id(), sp.bos_id(), sp.eos_id(), sp.pad_id()]', 'sp.normalize("ﬁ  x")',
    'sp.normalize("ﬁ  x ", with_offsets=True)', 'sp.normalize(["ﬁB", "㍻"])',
    'sp.Normalize("ﬁ  x".encode(), with_offsets=True)', 'sp.normalize("  ", with_offsets=True)',
    'sp.normalize("a\x01 ", with_offsets=True)', 'sp.normalize(b"a\x01 ", with_offsets=True)',
    'sp.normalize(b" ", with_offsets=True)', 'sp.normalize("\x01", with_offsets=True)',
    'sp.normalize(b"\x01", with_offsets=True)', 'sp.normalize("", with_offsets=True)',
    'sp.tokenize("hi")', 'sp.detokenize([5])',
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls(both, same, call):
    same(lambda sp: eval(call, {"sp": sp}), *both)  # the calls above


def test_any_text(both):
    mine, theirs = both
    words = [
        "hello",
        "world",
        "藤",
        "ﬁ",
        "½",
        "㍻",
        "don't",
        "12345",
        "清水寺は京都にある。",
        "\t\n",
        " ",
        "",
        "𓀀",
        "é",
    ]
    draw = random.Random(7)
    for _ in range(200):
        text = " ".join(draw.choices(words, k=draw.randint(0, 9)))
        pieces = theirs.encode_as_pieces(text)
        assert mine.encode(text) == theirs.encode(text), text
        assert mine.encode_as_pieces(text) == pieces, text
        assert mine.normalize(text, with_offsets=True) == theirs.normalize(text, with_offsets=True), text
        assert mine.decode(pieces) == theirs.decode(pieces), text


def message(found, of):
    """A record or message as the bytes of protocol buffers, in the order of fields that Python's writer has."""
    return of.FromString(found.SerializeToString() if hasattr(found, "SerializeToString") else found)


def drawn_text(draw, pieces):
    if draw.random() < 0.5:
        return "".join(draw.choices(pieces, k=draw.randint(0, 8))).replace("▁", " ")
    ranges = [
        (32, 126),
        (32, 33),
        (0xA0, 0x17F),
        (0x3040, 0x30FF),
        (0x4E00, 0x9FFF),
        (0x1F600, 0x1F601),
        (0xFB01, 0xFB02),
    ]
    return "".join(chr(draw.randint(*draw.choice(ranges))) for _ in range(draw.randint(0, 12)))


def test_pieces_have_the_same_places_in_each_form(both):
    messages = pytest.importorskip("sentencepiece.sentencepiece_pb2", reason="protobuf is not installed")
    mine, theirs = both
    draw, pieces = random.Random(11), [theirs.id_to_piece(token) for token in range(len(theirs))]
    for _ in range(120):
        text = drawn_text(draw, pieces)
        for given in (text, text.encode(), [text, "a"]):
            for raw in (None, True, False):
                how = {"return_type": "offset_mapping", "return_bytes": raw}
                assert mine.encode(given, **how) == theirs.encode(given, **how), given
        want = theirs.encode(text, out_type="proto")
        for found in (mine.encode(text, out_type="proto"), mine.encode(text, out_type="serialized_proto")):
            assert message(found, messages.SentencePieceText) == want, text
        ids = draw.choices(range(len(pieces)), k=draw.randint(0, 8))
        for given in (ids, [pieces[token] for token in ids], ["zz", "▁x", *(pieces[token] for token in ids)]):
            how = {"return_type": "offset_mapping", "return_bytes": draw.random() < 0.5}
            assert mine.decode(given, **how) == theirs.decode(given, **how), given
            found = mine.decode(given, out_type="proto")
            assert message(found, messages.SentencePieceText) == theirs.decode(given, out_type="proto"), given


def test_places_of_the_older_record_are_characters(both):
    mine = both[0]
    found = mine.encode("a 藤b", out_type="immutable_proto")
    assert found == mine.EncodeAsImmutableProto("a 藤b")
    assert found.text == "a 藤b"
    assert "".join(piece.surface for piece in found.pieces) == "a 藤b"
    assert all(found.text[piece.begin : piece.end] == piece.surface for piece in found.pieces)
    assert mine.encode("a 藤b".encode(), out_type="immutable_proto").pieces[-1].end == 6


@pytest.mark.parametrize("name", ["spm-test-ja", "syn-unigram-nfkc-cf", "syn-unigram-ties", "t5-spm"])
def test_the_n_best_ways_come_in_the_same_order(files, name):
    messages = pytest.importorskip("sentencepiece.sentencepiece_pb2", reason="protobuf is not installed")
    path = files(name)
    mine, theirs = as_sentencepiece(jittok.load(path)), spm.SentencePieceProcessor(model_file=str(path))
    draw, pieces = random.Random(5), [theirs.id_to_piece(token) for token in range(len(theirs))]
    for k in range(150):
        text = drawn_text(draw, pieces) if k % 3 else draw.choice("aeo ") * draw.randint(1, 20)
        size = draw.choice([1, 2, 5, 20, 100])
        assert mine.nbest_encode_as_ids(text, nbest_size=size) == theirs.nbest_encode_as_ids(text, nbest_size=size)
        how = {"nbest_size": 3, "reverse": k % 2 == 0, "emit_unk_piece": k % 5 == 0}
        assert mine.nbest_encode([text], return_type=str, **how) == theirs.nbest_encode([text], return_type=str, **how)
        found, want = (sp.nbest_encode(text, nbest_size=4, return_type="proto") for sp in (mine, theirs))
        assert message(found, messages.NBestSentencePieceText) == want, text


def test_n_best_of_a_long_text_drops_partial_paths_as_the_library_does(files):
    path = files("spm-test-ja")
    mine, theirs = as_sentencepiece(jittok.load(path)), spm.SentencePieceProcessor(model_file=str(path))
    text = "清水寺は京都にある。 hello world " * 12
    assert mine.nbest_encode_as_ids(text, 200) == theirs.nbest_encode_as_ids(text, 200)


@pytest.mark.parametrize(
    "call",
    [
        "sp.nbest_encode('hello', nbest_size=513)", "sp.nbest_encode('hello', nbest_size=0)", "sp.nbest_encode(3)",
        "sp.nbest_encode('a b', nbest_size=2, add_bos=True)", "sp.nbest_encode('', nbest_size=4)",
        "sp.nbest_encode('a', nbest_size=2, return_type='offset_mapping')", "sp.encode('a', return_bytes=True)",
        "sp.nbest_encode('a', return_type='numpy')[0].tolist()", "sp.nbest_encode('a b', 2, return_type=bytes)",
        "sp.encode('a', out_type='proto', add_bos=True)", "sp.encode('a', out_type='offset_mapping', reverse=True)",
        "sp.decode([], return_type='offset_mapping')", "sp.decode([[], [5]], return_type='offset_mapping')",
        "sp.decode([5], return_bytes=True)", "sp.decode([10**6], out_type='proto')", "sp.encode('a', out_type='no')",
        "sp.decode((('▁a', 'b'), ('c',)))", "sp.decode(((5, 6), (7,)))",
        "sp.decode(__import__('numpy').array([[5], [6]]))",
        "repr(sp.decode(['▁a'.encode(), 'b'], return_type='offset_mapping'))",
        "repr(sp.decode(b'b', return_type='offset_mapping'))",
        "repr(sp.decode([[], ['▁a'.encode()], ['b']], return_type='offset_mapping', return_bytes=False))",
        "repr(sp.decode([[5], [6]], return_type='offset_mapping', return_bytes=True))",
        "sp.NBestEncodeAsPieces(['a b', 'c'], 3)", "sp.encode('\\ud800', out_type='offset_mapping')",
    ],
)  # fmt: skip
def test_calls_with_places_and_n_best(both, same, call):
    same(lambda sp: eval(call, {"sp": sp}), *both)  # the calls above


def test_every_piece_and_its_kind(both):
    mine, theirs = both
    ids = list(range(len(theirs)))
    for name in ("id_to_piece", "is_unknown", "is_control", "is_unused", "is_byte"):
        assert getattr(mine, name)(ids) == getattr(theirs, name)(ids), name
    assert mine.get_score(ids) == pytest.approx(theirs.get_score(ids))


def test_options_of_the_constructor_are_defaults(files):
    path = files("mistral-v1")
    said = {"add_bos": True, "add_eos": True, "out_type": str}
    mine, theirs = as_sentencepiece(jittok.load(path), **said), spm.SentencePieceProcessor(model_file=str(path), **said)
    assert mine.encode("hello world") == theirs.encode("hello world")
    assert mine.encode("hello world", add_bos=False) == theirs.encode("hello world", add_bos=False)
    assert pickle.loads(pickle.dumps(mine)).encode("hello world") == mine.encode("hello world")


def test_its_model_can_be_read_again(files):
    mine = as_sentencepiece(jittok.load(files("mistral-v1")))
    again = spm.SentencePieceProcessor(model_proto=mine.serialized_model_proto())
    assert again.encode("Hello 藤 world") == mine.encode("Hello 藤 world")


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("sp.nbest_encode('a', nbest_size=2)", "tok.trace"), ("sp.encode('a', enable_sampling=True)", "deterministic"),
        ("sp.SampleEncodeAsIds('a', 64, 0.5)", "deterministic"), ("sp.encode('a', out_type='proto')", "tok.trace"),
        ("sp.ParallelEncode(['a'], 5)", "threads="),
        ("sp.set_encode_extra_options('bos')", "add_bos="), ("sp.Load('x.model')", "jittok.load"),
    ],
)  # fmt: skip
def test_what_is_not_there_names_the_call_instead(call, instead):
    sp = as_sentencepiece(jittok.bundled("mistral"))
    with pytest.raises(NotImplementedError, match=r"is not in jittok\.compat") as told:
        eval(call, {"sp": sp})  # the calls above
    assert instead in str(told.value)


@pytest.mark.parametrize("name", ["mistral", "t5"])
def test_a_gguf_has_pieces_too(name):
    tok = jittok.bundled(name)
    sp = as_sentencepiece(tok)
    assert sp.encode("Hello world") == tok.encode("Hello world").tolist()
    assert sp.piece_to_id(sp.encode("Hello world", out_type=str)) == sp.encode("Hello world")
    assert sp.decode(sp.encode("Hello world", out_type=str)) == "Hello world"
    assert sp.decode(["▁Hello", "𓀀"]) == "Hello𓀀"


def test_an_unknown_piece_of_a_gguf_is_its_text():
    sp = as_sentencepiece(jittok.bundled("t5"))
    assert sp.encode("a 𓀀", out_type=str)[-1] == "𓀀"
    assert sp.encode("a 𓀀".encode(), out_type=str)[-1] == "𓀀"
    assert sp.encode("a 𓀀", out_type=str, emit_unk_piece=True)[-1] == "<unk>"
    with pytest.raises(NotImplementedError, match=r"tok\.trace"):
        sp.normalize("a")


@pytest.mark.parametrize("name", ["bert", "gpt-2"])
def test_only_sentencepieces_kinds_can(name):
    with pytest.raises(TypeError, match="expected one of sentencepiece's"):
        as_sentencepiece(jittok.bundled(name))
    with pytest.raises(TypeError, match=r"expected a jittok\.Tokenizer"):
        as_sentencepiece(name)
