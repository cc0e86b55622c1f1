"""`as_transformers` gives what transformers gives over the real tokenizers: recorded calls, and uses of programs."""

import copy
import json
import lzma
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from recorded_files import SHARED

import jittok
from jittok.compat import as_transformers

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

RECORDED = SHARED / "golden-people" / "windows.jsonl.xz"
OPTIONS = (
    "truncation", "max_length", "stride", "padding", "pad_to_multiple_of", "padding_side",
    "return_overflowing_tokens", "add_special_tokens",
)  # fmt: skip
PADS = {"llama-3": "<|end_of_text|>", "gpt2": "<|endoftext|>"}


def rows_of(path):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check_row(tok, row):
    tok.truncation_side = row["truncation_side"]
    said = {name: row[name] for name in OPTIONS}
    try:
        found = tok(row["text"], row["pair"], return_offsets_mapping=True, return_special_tokens_mask=True, **said)
    except Exception:
        if "error" in row:
            return
        raise
    assert "error" not in row, row
    answer = json.loads(json.dumps(dict(found)))
    for name in {*answer, *row["answer"]}:
        want = row["answer"].get(name)
        assert answer.get(name) in (want, want and want[0]), (name, row)
    rows = range(len(found.encodings))
    assert [found.word_ids(k) for k in rows] == row["word_ids"]
    assert [found.sequence_ids(k) for k in rows] == row["sequence_ids"]


@pytest.mark.skipif(not RECORDED.exists(), reason=f"{RECORDED} is not there; set JITTOK_SHARED")
@pytest.mark.every_set
@pytest.mark.parametrize("name", ["albert", "bert-base-uncased", "gpt2", "llama-3", "roberta-base", "t5-sd3"])
def test_recorded_calls(files, name):
    rows = [row for row in rows_of(RECORDED) if row["tokenizer"] == name]
    own = jittok.load(files("gpt2-files" if name == "gpt2" else name))
    if name == "gpt2":  # its file has a step that the vocabulary alone does not
        own = jittok.Tokenizer(own.vocab._replace(trims_spans=True, keeps_prefix=True))
    tok = as_transformers(own, **({"pad_token": PADS[name]} if name in PADS else {}))
    assert len(rows) > 50
    for row in rows:
        check_row(tok, row)


@pytest.fixture(scope="module")
def both(files):
    """A facade, and transformers' own class over the same file."""
    path = files("syn-wordpiece-flags")
    named = {
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
        "unk_token": "[UNK]",
    }
    named = {role: text for role, text in named.items() if jittok.load(path).token_to_id(text) is not None}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), **named)
    return as_transformers(jittok.load(path), **named, model_input_names=theirs.model_input_names), theirs


TEXTS = ["a b ab", "", "Zürich is a city", "x" * 40]
CALLS = [
    lambda t: dict(t(TEXTS)), lambda t: dict(t(TEXTS, padding=True)),
    lambda t: dict(t(TEXTS, TEXTS[::-1], padding="longest")),
    lambda t: dict(t("a b", "ab", max_length=8, padding="max_length")), lambda t: t.encode("a b ab"),
    lambda t: dict(t(TEXTS, truncation=True, max_length=6, stride=2, return_overflowing_tokens=True)),
    lambda t: dict(t([["a", "b"], ["ab"]], is_split_into_words=True)), lambda t: t.tokenize("a b unhappy"),
    lambda t: t.decode(t.encode("a b ab")), lambda t: t.decode(t.encode("a b ab"), skip_special_tokens=True),
    lambda t: t.batch_decode([[5, 6], []]), lambda t: t.convert_tokens_to_ids(["a", "no such token"]),
    lambda t: t.convert_ids_to_tokens([1, 42]), lambda t: t.convert_tokens_to_string(["a", "b"]),
    lambda t: t.__len__(), lambda t: t.vocab_size, lambda t: sorted(t.get_vocab().items()),
    lambda t: sorted(t.all_special_tokens), lambda t: sorted(t.all_special_ids), lambda t: t.special_tokens_map,
    lambda t: t.is_fast, lambda t: t.num_special_tokens_to_add(True),
    lambda t: t.pad({"input_ids": [[1, 2], [3]]}).data, lambda t: t.pad_token_id, lambda t: t(None), lambda t: t(3),
    lambda t: t(["a", None]), lambda t: dict(t("a b", return_offsets_mapping=True, return_length=True)),
    lambda t: t("a b ab").char_to_token(2), lambda t: t("a b ab").word_to_tokens(1), lambda t: t("a b").tokens(),
    lambda t: dict(t("[MASK] a", split_special_tokens=True)), lambda t: t.get_added_vocab(),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls(both, same, call):
    same(call, *both)


CHAT = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def test_chat_templates_are_transformers_own(both, same):
    pytest.importorskip("jinja2")
    chat = [{"role": "user", "content": "a b"}, {"role": "assistant", "content": "ab [MASK]"}]
    for how in ({"tokenize": False}, {"add_generation_prompt": True}, {"padding": "max_length", "max_length": 30}):
        same(lambda t, how=how: t.apply_chat_template(chat, chat_template=CHAT, **how), *both)


def test_copies_pickles_and_folders_are_the_same(both, tmp_path):
    mine = both[0]
    for again in (copy.copy(mine), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        assert type(again) is type(mine)
        assert again("a b ab")["input_ids"] == mine("a b ab")["input_ids"]
        assert again.pad_token == mine.pad_token
    made = as_transformers(jittok.bundled("gpt-2"), pad_token="<|endoftext|>")
    made.save_pretrained(tmp_path)
    again = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert again("Hello wörld")["input_ids"] == made("Hello wörld")["input_ids"]


def test_threads_do_not_share_truncation_and_padding(both):
    mine = both[0]
    texts = ["a b ab a b ab a b ab a b"] * 3

    def length(size):
        return {len(ids) for _ in range(40) for ids in mine(texts, truncation=True, max_length=size)["input_ids"]}

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(length, [4, 6, 8, 10])) == [{4}, {6}, {8}, {10}]
    assert len({len(ids) for ids in mine(texts)["input_ids"]} | {11}) == 2  # nothing stays behind


def test_what_is_not_there_names_the_call_instead(both):
    with pytest.raises(NotImplementedError, match=r"jittok\.train"):
        both[0].train_new_from_iterator([["a"]], 100)
    with pytest.raises(NotImplementedError, match=r"jittok\.convert"):
        both[0].add_tokens(["<new>"])


def test_a_config_next_to_the_file_is_obeyed(files, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(files("syn-wordpiece-flags").read_bytes())
    config = {
        "model_max_length": 12,
        "padding_side": "left",
        "chat_template": CHAT,
        "mask_token": {"content": "[MASK]"},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = as_transformers(jittok.load(tmp_path))
    assert (tok.model_max_length, tok.padding_side, tok.chat_template) == (12, "left", CHAT)
    assert as_transformers(jittok.load(tmp_path), padding_side="right").padding_side == "right"
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert as_transformers(jittok.load(tmp_path)).chat_template == "{{ messages }}"


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("bert", {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "pad_token": "[PAD]"}),
        ("gpt-2", {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}),
        ("mistral", {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}),
        ("t5", {"eos_token": "</s>", "pad_token": "<pad>"}),
    ],
)
def test_a_gguf_has_roles_and_text(name, roles):
    tok = as_transformers(jittok.bundled(name))
    assert {role: tok.special_tokens_map.get(role) for role in roles} == roles
    assert tok.decode(tok("Hello world")["input_ids"], skip_special_tokens=True).lower() == "hello world"


def test_datasets_map_in_processes_and_the_fingerprint_stays(both):
    datasets = pytest.importorskip("datasets")
    from datasets.fingerprint import Hasher

    mine = both[0]
    before = Hasher.hash(mine)
    mine(["a"], truncation=True, max_length=3, padding=True)
    assert Hasher.hash(mine) == before == Hasher.hash(copy.deepcopy(mine))
    rows = datasets.Dataset.from_dict({"text": ["a b", "ab", "b a"]})
    made = rows.map(lambda batch: dict(mine(batch["text"])), batched=True)
    assert made["input_ids"][:] == mine(["a b", "ab", "b a"])["input_ids"]


def test_only_a_tokenizer_can_be_one():
    with pytest.raises(TypeError, match=r"expected a jittok\.Tokenizer"):
        as_transformers("gpt-2")
