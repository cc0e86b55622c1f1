"""vocab.txt, and vocab.json with merges.txt: the tokenizer.json that transformers builds from them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.pipeline.steps import JoinBytes, Pattern, ReplaceEach, Trim
from jittok.errors import InWords, MalformedVocab, UnsupportedVocab
from jittok.files.contents import lines_of, parse_json, read_file
from jittok.files.hf.tokenizer_json import pipeline_of
from jittok.files.json_nodes import Node
from jittok.files.ranks import LANGUAGES
from jittok.files.transformers.auto_class import beside as read_beside
from jittok.files.transformers.auto_class import class_of
from jittok.files.transformers.roles import with_roles

CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
END = "<|endoftext|>"
ORDER = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
SPECIALS: dict[str, dict[str, str]] = {
    "BertTokenizer": {
        "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]",
    },
    "GPT2Tokenizer": {"bos_token": END, "eos_token": END, "unk_token": END},
    "WhisperTokenizer": {"bos_token": END, "eos_token": END, "unk_token": END},
    "CLIPTokenizer": {"bos_token": "<|startoftext|>", "eos_token": END, "unk_token": END, "pad_token": END},
    "RobertaTokenizer": {
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
        "cls_token": "<s>", "mask_token": "<mask>",
    },
}  # fmt: skip
"""Class of transformers -> its named special tokens where the files beside say nothing."""
OF_VOCAB_TXT, OF_VOCAB_JSON = (
    ("BertTokenizer",),
    ("GPT2Tokenizer", "CLIPTokenizer", "RobertaTokenizer", "WhisperTokenizer"),
)
"""Classes by their files, first the one that is taken where no file names a class."""
WHITE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace() and not 0x1C <= code < 0x20)
"""White space as Unicode's property says. Python's own strip takes U+001C to U+001F too."""
TASKS = ("transcribe", "translate")
ID = re.compile(r"[0-9]{1,10}")
EXTRA = "extra_special_tokens"
MAPPED = "in special_tokens_map.json"
"""What is put to an object that is there."""
FLAGS = ("single_word", "lstrip", "rstrip", "normalized")


def read_vocab_txt(path: Path) -> Pipeline:
    """The Pipeline of a vocab.txt: line number = id, white space after a token cut off."""
    lines = lines_of(str(path), read_file(path))
    ids: dict[str, int] = {}
    for number, line in enumerate(lines):
        ids[line.rstrip(WHITE)] = number  # of equal lines the last
    if not ids:
        raise MalformedVocab(str(path), "line 1", InWords("no token"), "one token per line")
    siblings = _Beside(path.parent, OF_VOCAB_TXT)
    lowercase = siblings.flag("do_lower_case", True)
    model = {
        "type": "WordPiece", "vocab": ids, "unk_token": siblings.text("unk_token"), "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    }  # fmt: skip
    added = siblings.added(ids)
    numbers = _numbers(ids, added)
    cls, sep = (
        _id_of(path, siblings.text(name), numbers) if siblings.special(name) is not None else ["None", default]
        for name, default in (("cls_token", 2), ("sep_token", 3))  # what the class takes for a null
    )
    if cls[0] == sep[0]:
        cls = sep  # the class knows ids by their texts
    accents = siblings.config.get("strip_accents")
    root = {
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "lowercase": lowercase,
            "handle_chinese_chars": siblings.flag("tokenize_chinese_chars", True), "strip_accents": accents,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": cls, "sep": sep},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": model,
    }  # fmt: skip
    return _made(path, root, "vocab.txt", siblings)


def read_vocab_json(folder: Path, vocab: Path, merges: Path) -> Pipeline:
    """The Pipeline of a vocab.json and the merges.txt beside it."""
    siblings = _Beside(folder, OF_VOCAB_JSON)
    whole = parse_json(str(vocab), read_file(vocab))
    ids = whole.of(dict)
    if {*map(type, ids.values())} - {int}:
        ids = {text: whole.count(text) for text in ids}
    name = siblings.name
    added = siblings.added(ids)
    numbers = _numbers(ids, added)
    byte_level: dict[str, Any] = {"type": "ByteLevel", "add_prefix_space": siblings.flag("add_prefix_space", False)}
    root: dict[str, Any] = {
        "added_tokens": added,
        "pre_tokenizer": byte_level,
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": ids, "merges": _merge_lines(merges)},
    }
    if name == "CLIPTokenizer":
        spaces = {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}
        split = {"type": "Split", "pattern": {"Regex": CLIP}, "behavior": "Removed", "invert": True}
        steps = [{"type": "NFC"}, spaces, {"type": "Lowercase"}]
        root["normalizer"] = {"type": "Sequence", "normalizers": steps}
        root["pre_tokenizer"] = {
            "type": "Sequence",
            "pretokenizers": [split, {**byte_level, "add_prefix_space": False}],
        }
        root["model"] |= {"end_of_word_suffix": "</w>", "unk_token": siblings.text("unk_token")}
    if name in ("CLIPTokenizer", "RobertaTokenizer"):
        parts = ("bos_token", "eos_token") if name == "CLIPTokenizer" else ("cls_token", "sep_token")
        cls, sep = (_id_of(vocab, siblings.text(part), numbers) for part in parts)
        flags = {"trim_offsets": True, "add_prefix_space": False}  # of offsets, which are jittok's own
        root["post_processor"] = {"type": "RobertaProcessing", "cls": cls, "sep": sep, **flags}
    if name == "GPT2Tokenizer":
        before, after = (
            [_id_of(vocab, siblings.text(f"{end}_token"), numbers)]
            if siblings.flag(f"add_{end}_token", False) and siblings.special(f"{end}_token") is not None
            else []
            for end in ("bos", "eos")
        )
        if before or after:
            root["post_processor"] = _around(before, after, each=True)
    if name == "WhisperTokenizer":
        end = _id_of(vocab, siblings.text("eos_token"), numbers)
        root["post_processor"] = _around(_before_a_transcript(vocab, siblings, numbers), [end])
    made = _made(vocab, root, "vocab.json+merges.txt", siblings, str(merges))
    if name == "CLIPTokenizer":
        return made._replace(decode=(JoinBytes(), ReplaceEach(Pattern("</w>", literal=True), " "), Trim()))
    return made


def _before_a_transcript(path: Path, siblings: _Beside, numbers: dict[str, Any]) -> list[Any]:
    """What is before a text of Whisper: for a token that is missing the unknown token does."""

    def found(text: str) -> list[Any]:
        return _id_of(path, text if text in numbers else siblings.text("unk_token"), numbers)

    start = found("<|startoftranscript|>")
    out, said = [start], siblings.node.get("language", str, None)
    if said is not None:
        if said.lower() not in LANGUAGES:
            raise siblings.node.child("language").unknown(said, f"one of {', '.join(LANGUAGES)}")
        number = start[1] + 1 + LANGUAGES.index(said.lower())  # whatever token that is
        texts = {token: text for text, token in numbers.items()}
        if number not in texts:
            raise siblings.node.child("language").bad(said, f"a token of the id {number}")
        out.append([texts[number], number])
    task = siblings.node.get("task", str, None)
    if task is not None:
        if task not in TASKS:
            raise siblings.node.child("task").unknown(task, f"one of {', '.join(TASKS)}")
        out.append(found(f"<|{task}|>"))
    return out if siblings.flag("predict_timestamps", False) else [*out, found("<|notimestamps|>")]


def _around(before: list[list[Any]], after: list[list[Any]], each: bool = False) -> dict[str, Any]:
    """A template with tokens around a text, and around a pair or `each` text of it."""

    def item(row: list[Any], kind: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": row[0], "type_id": kind}}

    first = [*map(item, before), {"Sequence": {"id": "A", "type_id": 0}}]
    single = [*first, *map(item, after)]
    pair = [*first, {"Sequence": {"id": "B", "type_id": 0}}, *map(item, after)]
    if each:
        second = {"Sequence": {"id": "B", "type_id": 1}}
        pair = [*single, *(item(row, 1) for row in before), second, *(item(row, 1) for row in after)]
    special = {row[0]: {"id": row[0], "ids": [row[1]], "tokens": [row[0]]} for row in before + after}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


def _merge_lines(path: Path) -> list[str]:
    return [line.removesuffix("\r") for line in lines_of(str(path), read_file(path))]


def _id_of(path: Path, text: str, numbers: dict[str, Any]) -> list[Any]:
    if text not in numbers:
        raise MalformedVocab(str(path), "tokens", InWords(f"no {text!r}"), "the special tokens around a text")
    return [text, numbers[text]]


def _numbers(ids: dict[str, Any], added: list[dict[str, Any]]) -> dict[str, Any]:
    """text -> the id that it has, whatever the files say: that of the vocabulary, else the next free one."""
    new = dict.fromkeys(row["content"] for row in added if row["content"] and row["content"] not in ids)
    return {**ids, **dict(zip(new, range(len(ids), len(ids) + len(new)), strict=True))}


def _made(path: Path, root: dict[str, Any], kind: str, siblings: _Beside, merges: str = "") -> Pipeline:
    file = merges or str(path)
    made = pipeline_of(Node(file, "", root), b"", siblings.notes)
    made = made._replace(source=str(path), format=kind, library="transformers")
    return with_roles(made, path.parent, siblings.name)


def _names_a_token(key: str) -> bool:
    return key.endswith("_token") and key not in ORDER


def _is_token(row: dict[str, Any]) -> bool:
    """Whether an object under a name of its own is a token: in tokenizer_config.json only where it says so."""
    return MAPPED in row or row.get("__type") == "AddedToken"


class _Beside:
    """What tokenizer_config.json and its like say, beside a vocabulary in a folder."""

    def __init__(self, folder: Path, classes: tuple[str, ...]) -> None:
        """classes: those whose files these are; the first where no file says one. UnsupportedVocab for another."""
        self.node = read_beside(folder, "tokenizer_config.json")
        self.config: dict[str, Any] = dict(self.node.of(dict))
        self.named, self.extra = self._put_together(read_beside(folder, "special_tokens_map.json").of(dict))
        self.more: dict[str, Any] = read_beside(folder, "added_tokens.json").of(dict)
        said = class_of(folder)
        self.name = said or classes[0]
        self.notes = (f"as transformers' {self.name} reads these files",)
        if said is None:
            self.notes = (f"as transformers' {self.name} reads these files: none beside them names a class",)
        if self.name not in classes:
            found = InWords(f"{self.name}, which AutoTokenizer takes for this folder")
            raise UnsupportedVocab(str(folder), "tokenizer_class or model_type", found, "one of " + ", ".join(classes))

    def flag(self, key: str, default: bool) -> bool:
        return bool(self.node.get(key, bool, default))

    def special(self, key: str) -> Any:
        """What a named special token is: a text, an object with its flags, or None."""
        return self._checked(key, self.config.get(key, SPECIALS[self.name].get(key)))

    def _checked(self, key: str, found: Any) -> Any:
        said = found is None or isinstance(found, str)
        if not said and not (isinstance(found, dict) and isinstance(found.get("content"), str)):
            raise self.node.child(key).bad(found, "a text, or an object with content")
        return found

    def _put_together(self, special: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Special tokens of other names, and those without a name; the map goes into `config`.

        The map is above tokenizer_config.json, and is not read where that holds added_tokens_decoder.
        """
        config = self.config
        if not config.get(EXTRA) and "additional_special_tokens" in config:
            config[EXTRA] = config.pop("additional_special_tokens")
        named = {
            key: config.pop(key)
            for key in [key for key in config if _names_a_token(key) and isinstance(config[key], str)]
        }
        if isinstance(config.get(EXTRA), dict):
            named |= config.pop(EXTRA)
        if "added_tokens_decoder" not in config:
            before = config.get(EXTRA) or []
            config |= {
                key: {**row, MAPPED: True} if key.endswith("_token") and isinstance(row, dict) else row
                for key, row in special.items()
            }
            if isinstance(config.get(EXTRA), dict):
                named |= config.pop(EXTRA)
            elif EXTRA in special and isinstance(before, list):
                mapped = [
                    {**row, "special": True, MAPPED: True} if isinstance(row, dict) else row
                    for row in self._rows(EXTRA)
                ]
                config[EXTRA] = before + [row for row in mapped if row not in before]
        if EXTRA not in config and "additional_special_tokens" in config:
            config[EXTRA] = config.pop("additional_special_tokens")
        more = {
            key: row for key, row in config.items()
            if _names_a_token(key) and (isinstance(row, str) or (isinstance(row, dict) and _is_token(row)))
        }  # fmt: skip
        return {**more, **named}, self._rows(EXTRA)

    def _rows(self, key: str) -> list[Any]:
        rows = self.config.get(key)
        if rows is not None and not isinstance(rows, list):
            raise self.node.child(key).bad(rows, "a list of tokens")
        return rows or []

    def text(self, key: str) -> str:
        """The text of a named special token. MalformedVocab where there is none."""
        found = self.special(key)
        if found is None:
            raise self.node.child(key).bad(None, "a special token")
        return str(found if isinstance(found, str) else found["content"])

    def _numbered(self) -> Iterator[tuple[str, int, dict[str, Any], bool]]:
        """(content, id, flags, whether it is special) of the tokens that files list by id, ascending."""
        decoder = self.node.get("added_tokens_decoder", dict, {})
        for number, entry in sorted(decoder.items(), key=lambda row: int(row[0]) if ID.fullmatch(row[0]) else -1):
            if not ID.fullmatch(number) or not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
                raise self.node.child("added_tokens_decoder").bad(entry, "an id and a token with content")
            yield entry["content"], int(number), entry, bool(entry.get("special"))
        more = {} if "added_tokens_decoder" in self.config else self.more
        for content, number in more.items():
            if type(number) is not int or number < 0:
                raise Node(self.node.file, f"added_tokens.json[{content!r}]", None).bad(number, "an id, 0 or more")
        by_number = {number: content for content, number in more.items()}  # of equal numbers the last
        for number, content in sorted(by_number.items()):
            yield content, number, {}, False

    def added(self, ids: dict[str, Any]) -> list[dict[str, Any]]:
        """All added tokens as rows of a tokenizer.json."""
        rows: dict[str, dict[str, Any]] = {}
        before: dict[str, dict[str, Any]] = {}  # what was normalized at first goes on to print that
        unsaid: set[str] = set()  # tokens whose row does not say whether they are normalized
        top = len(ids)

        def enter(content: str, said: Any, flags: dict[str, Any], special: bool) -> None:
            nonlocal top
            token = rows[content]["id"] if content in rows else ids.get(content, said)
            if token is None:
                token, top = top, top + 1
            chosen = {name: bool(flags.get(name, name == "normalized" and not special)) for name in FLAGS}
            (unsaid.discard if "normalized" in flags else unsaid.add)(content)
            if content in rows and rows[content]["normalized"]:
                before[content] = rows[content]
            rows[content] = {"id": token, "content": content, "special": special, **chosen}

        for content, number, flags, special in self._numbered():
            enter(content, number, flags, special)
            top = max(top, number + 1)
        said, decoder = frozenset(rows), self.node.get("added_tokens_decoder", dict, {})
        named = [row for row in (*map(self.config.get, ORDER), *self.extra) if row]
        by_files = {
            row["content"] if isinstance(row, dict) else row
            for row in map(partial(self._checked, EXTRA), named)
            if isinstance(row, str) or MAPPED in row
        }

        def enter_special(key: str, found: Any, special: bool) -> None:
            row = self._checked(key, found)
            flags = row if isinstance(row, dict) else {}
            content = flags.get("content", row)
            if row is None:
                return
            if content not in said:  # the last one's flags hold
                enter(content, None, flags, special or (content in rows and rows[content]["special"]))
            elif key != EXTRA or (isinstance(row, str) and not decoder):
                rows[content]["special"] = True
                if key != EXTRA and decoder and content in unsaid:
                    rows[content]["normalized"] = False
                if key not in self.named and not decoder:
                    if rows[content]["normalized"] and content not in by_files:
                        before[content] = dict(rows[content])
                    rows[content].update(dict.fromkeys(FLAGS, False))

        for key in ORDER:
            enter_special(key, self.special(key), True)
        for key, found in self.named.items():
            enter_special(key, found, True)
        for found in self.extra:
            enter_special(
                EXTRA, found, isinstance(found, str) or bool(isinstance(found, dict) and found.get("special"))
            )
        return [row for content, last in rows.items() for row in (before.get(content), last) if row is not None]
