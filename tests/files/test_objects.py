"""Law: a door that cannot give the object's own answers refuses, naming why. Asked of every class of transformers that
can be built without a network, of sentencepiece's options and of what tokenizers' objects hold."""

import inspect
import io
import json
import os

import pytest

import jittok
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.errors import UnsupportedVocab

TEXTS = [
    "", "a", "Hello world", " Hello  World , it 's  12 .", "caf\u00e9 \u00c9t\u00e9 \u3053\u3093", "line\n\ttwo \n",
    "<s> x </s><unk>[MASK] y", "a<|endoftext|>b <pad> [SEP]", "do n't ! we 're , ok ?", "\u2581a \u2581b",
]  # fmt: skip
NAMES = [
    "<s>", "<pad>", "</s>", "<unk>", "<mask>", "[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>",
    "<|startoftext|>", "<cls>", "<eos>", "<bos>", "<sep>", "<eop>", "<eod>", "[PAD0]", "en_XX", "eng_Latn",
]  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyzHW0123456789.,!?'"
WORDS = ["he", "llo", "wor", "ld", "hello", "world", "it", "do"]


def vocabularies():
    """What a constructor may want as vocab: of bytes, of pieces with scores, of words."""
    texts = [*NAMES, *(chr(c) for c in CHARACTER_OF_BYTE), "\u2581"]
    bytes_ = {text: token for token, text in enumerate(dict.fromkeys([*texts, "He", "ll", "o</w>", "a</w>"]))}
    pieces = dict.fromkeys([*NAMES, "\u2581", *LETTERS, "\u00e9", *WORDS, *(f"\u2581{word}" for word in WORDS)])
    rows = [(text, 0.0 if text in NAMES else -2.0 - k / 50) for k, text in enumerate(pieces)]
    words = dict.fromkeys([*NAMES, *LETTERS, *(f"##{c}" for c in LETTERS), *WORDS])
    fillers = [(f"[f{k}]", -40.0) for k in range(120)]
    return [
        {"vocab": bytes_, "merges": [("l", "l")]}, {"vocab": [*rows, *fillers]},
        {"vocab": {text: token for token, text in enumerate(words)}},
        {"vocab": {text: token for token, text in enumerate(words)}, "merges": []},
    ]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Name of an argument -> files that it may mean."""
    spm = pytest.importorskip("sentencepiece")
    folder, model = tmp_path_factory.mktemp("parts"), io.BytesIO()
    lines = iter([" ".join(WORDS), LETTERS.replace("", " "), "hello world it do"] * 30)
    spm.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=60, hard_vocab_limit=False, model_type="unigram",
        user_defined_symbols=["<mask>"], minloglevel=2,
    )  # fmt: skip
    texts = [*NAMES, *LETTERS, *WORDS, *(f"\u2581{word}" for word in WORDS)]
    content = {
        "m.model": model.getvalue(), "v.txt": "\n".join(texts).encode(), "m.txt": b"#version: 0.2\nl l\n",
        "v.json": json.dumps({text: token for token, text in enumerate(texts)}).encode(),
    }  # fmt: skip
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return {name: str(folder / name) for name in content}


def built(kind, files):
    """An object of a class, made from the first arguments that it takes; None for one that takes none of these."""
    wanted = inspect.signature(kind.__init__).parameters
    made_of = [{name: value for name, value in given.items() if name in wanted} for given in vocabularies()]
    for first in ("m.model", "v.txt", "v.json"):
        paths = {"vocab_file": first, "merges_file": "m.txt", "spm_file": "m.model", "source_spm": "m.model",
                 "target_spm": "m.model", "vocab": "v.json", "monolingual_vocab_file": "v.txt"}  # fmt: skip
        made_of.append({name: files[path] for name, path in paths.items() if name in wanted})
        made_of.append({"vocab_file": files[first]})
    for given in made_of:
        more = {"tags_dict": {}} if "tags_dict" in wanted else {}
        try:
            made = kind(**given, **more)
            made.get_vocab()
            if len(made(TEXTS[2])["input_ids"]) > 1:
                return made
        except Exception:  # noqa: BLE001  each class says in its own way what it lacks
            continue
    return None


def classes():
    """Every class of transformers by name, each once."""
    os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")
    try:
        import transformers
        from transformers.models.auto import tokenization_auto as auto
    except ImportError:
        return {}
    found = {}
    for name in {*auto.TOKENIZER_MAPPING_NAMES.values(), *dir(transformers)} - {None}:
        if name.endswith(("Tokenizer", "TokenizerFast", "Backend")):
            try:
                kind = auto.tokenizer_class_from_name(name)
            except Exception:  # noqa: BLE001  a package that it needs is not there
                continue
            if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedTokenizerBase):
                found[kind.__name__] = kind
    return dict(sorted(found.items()))


def unlike(own, tok):
    """The first of its answers that an object's own are not."""
    for text in TEXTS:
        for special in (False, True):
            mine = tok.encode(text, add_special=special, parse_special=True).tolist()
            its = own(text, add_special_tokens=special)["input_ids"]
            if mine != its:
                return f"{text!r}, {special}: {mine}, not {its}"
            for skip in (False, True):
                text_of, text_is = own.decode(its, skip_special_tokens=skip), tok.decode(its, skip_special=skip)
                if text_is != text_of:
                    return f"decode {its}: {text_is!r}, not {text_of!r}"
        if own.is_fast:
            pair = tok.encode_pair(text, "a b", parse_special=True).tolist()
            if text and pair != own(text, "a b")["input_ids"]:
                return f"pair {text!r}: {pair}"
    if len(tok) < max(own.get_vocab().values()) + 1:
        return "fewer tokens"
    for role in ("bos", "eos", "pad", "unk"):
        if getattr(tok, f"{role}_id") != getattr(own, f"{role}_token_id"):
            return f"{role}_id {getattr(tok, f'{role}_id')}"
    return None


EQUAL = {
    "AlbertTokenizer", "BertTokenizer", "CLIPTokenizer", "DebertaTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer",
    "LlamaTokenizer", "MBartTokenizer", "MPNetTokenizer", "Qwen2Tokenizer", "RobertaTokenizer", "T5Tokenizer",
    "XLMRobertaTokenizer",
}  # fmt: skip
"""Classes whose answers are those of tokenizers: one that is refused is one too many."""


@pytest.mark.filterwarnings("ignore")
def test_every_class_of_transformers_gives_its_own_answers_or_is_refused_by_name(files):
    pytest.importorskip("transformers")
    said, wrong = {}, {}
    for name, kind in classes().items():
        own = built(kind, files)
        if own is None:
            continue
        try:
            tok = jittok.from_transformers(own)
        except UnsupportedVocab as error:
            said[name] = str(error)
            continue
        said[name] = "equal"
        if difference := unlike(own, tok):
            wrong[name] = difference
    assert not wrong
    assert all(name in text for name, text in said.items() if text != "equal")
    assert len(said) > 60
    assert {name for name, text in said.items() if text == "equal"} >= EQUAL


@pytest.mark.parametrize("name", ["BertTokenizer", "T5Tokenizer", "GPT2Tokenizer", "CLIPTokenizer"])
@pytest.mark.parametrize("forced", [False, True])
def test_spaces_that_transformers_cleans_up_are_cleaned_up(name, forced, files):
    transformers = pytest.importorskip("transformers")
    own = built(getattr(transformers, name), files)
    own.clean_up_tokenization_spaces = True
    own.clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output = forced
    assert unlike(own, jittok.from_transformers(own)) is None


def test_what_a_derived_class_or_an_object_answers_by_itself_is_refused(files):
    transformers = pytest.importorskip("transformers")
    own = built(transformers.GPT2Tokenizer, files)

    class Louder(transformers.GPT2Tokenizer):
        def _decode(self, *given, **more):
            return super()._decode(*given, **more).upper()

    assert jittok.from_transformers(own) == jittok.from_tokenizers(own.backend_tokenizer)
    own.__class__ = Louder
    with pytest.raises(UnsupportedVocab, match="Louder: found an overridden method _decode"):
        jittok.from_transformers(own)
    own.__class__ = transformers.GPT2Tokenizer
    own.backend_tokenizer.encode_batch = lambda *_: []
    for call in (lambda: jittok.from_transformers(own), lambda: jittok.from_tokenizers(own.backend_tokenizer)):
        with pytest.raises(UnsupportedVocab, match="an overridden method encode_batch"):
            call()


# ---- sentencepiece


@pytest.mark.parametrize(
    "options", [{}, {"add_bos": True}, {"add_eos": True}, {"add_bos": True, "add_eos": True}, {"num_threads": 2}]
)
def test_what_a_processor_puts_around_a_text_is_what_add_special_puts(options, files):
    library = pytest.importorskip("sentencepiece")
    own = library.SentencePieceProcessor(model_file=files["m.model"], **options)
    tok = jittok.from_sentencepiece(own)
    for text in TEXTS:
        assert tok.encode(text, add_special=True).tolist() == own.encode(text)
        assert tok.encode(text).tolist() == own.encode(text, add_bos=False, add_eos=False)
        assert tok.decode(own.encode(text)) == own.decode(own.encode(text))


@pytest.mark.parametrize(
    "options", [{"reverse": True}, {"enable_sampling": True, "nbest_size": -1, "alpha": 0.1}, {"emit_unk_piece": True}]
)
def test_a_processor_with_an_option_that_changes_ids_is_refused_by_its_name(options, files):
    library = pytest.importorskip("sentencepiece")
    own = library.SentencePieceProcessor(model_file=files["m.model"], **options)
    with pytest.raises(UnsupportedVocab, match=f"{next(iter(options))}=True"):
        jittok.from_sentencepiece(own)


# ---- tokenizers


def words(**parts):
    tokenizers = pytest.importorskip("tokenizers")
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2}, "unk_token": "a", **parts}
    return tokenizers.Tokenizer.from_str(json.dumps({"added_tokens": [], "model": model}))


def test_an_object_whose_ids_are_not_those_that_it_writes_is_refused():
    """A new token that takes an id of the model; two texts of one id."""
    two = words(vocab={"a": 0, "b": 1, "c": 1})
    with pytest.raises(UnsupportedVocab, match="id 1 for"):
        jittok.from_tokenizers(two)
    holes = words(vocab={"a": 0, "b": 1, "c": 3})
    holes.add_tokens(["new"])  # which gets the id 3
    with pytest.raises(UnsupportedVocab, match="id 3 for"):
        jittok.from_tokenizers(holes)


def test_an_object_with_a_special_token_that_was_added_again_gives_its_own_ids_or_is_refused():
    tokenizers = pytest.importorskip("tokenizers")
    for first, second in (("add_tokens", "add_special_tokens"), ("add_special_tokens", "add_tokens")):
        own = words()
        for call in (first, second, first):
            getattr(own, call)([tokenizers.AddedToken("<x>", lstrip=call == first), "b", "<y>"])
        try:
            tok = jittok.from_tokenizers(own)
        except UnsupportedVocab:
            continue
        for text in ("a <x> b<y>", "<x>", "  <x>b"):
            assert tok.encode(text, parse_special=True).tolist() == own.encode(text).ids


def test_an_object_with_a_part_in_python_is_refused():
    tokenizers = pytest.importorskip("tokenizers")

    class Own:
        def pre_tokenize(self, pretok):
            pass

    own = words()
    own.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Own())
    with pytest.raises(UnsupportedVocab, match="a component that cannot be serialized"):
        jittok.from_tokenizers(own)


def test_a_derived_encoding_of_tiktoken_is_refused():
    tiktoken = pytest.importorskip("tiktoken")

    class Own(tiktoken.Encoding):
        def encode_ordinary(self, text):
            return super().encode_ordinary(text.upper())

    ranks = {bytes([byte]): byte for byte in range(256)}
    for kind, refused in ((tiktoken.Encoding, False), (Own, True)):
        own = kind("own", pat_str=r"\p{L}+|[^\p{L}]+", mergeable_ranks=ranks, special_tokens={})
        if refused:
            with pytest.raises(UnsupportedVocab, match="an overridden method encode_ordinary"):
                jittok.from_tiktoken(own)
        else:
            assert jittok.from_tiktoken(own).encode("ab c").tolist() == own.encode("ab c")
