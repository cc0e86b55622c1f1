"""What a user writes and a checker takes (see test_types)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import jittok
from jittok.compare import Comparison
from jittok.compare.machines import Machines
from jittok.convert import Converted
from jittok.train import Counts, How, Trained

tok = jittok.bundled("gpt-2")
assert_type(tok, jittok.Tokenizer)
rows = tok.encode_batch(["a", b"b"], errors="replace", threads=2)
assert_type(rows, jittok.TokenArray)
tok.encode_batch(np.array(["a"]))
tok.encode_batch(x for x in ("a", "b"))
tok.encode_batch(jittok.Ragged(np.zeros(0, np.uint8), np.zeros(1, np.int64)))
assert_type(tok.decode([1, 2]), str)
assert_type(tok.count("a"), int)
ids, mask, types = rows.to_padded(4, pad_id=tok.pad_id, side="left", truncate=True)
assert_type(ids, NDArray[np.int32])
assert_type(mask, NDArray[np.bool_])
assert_type(types, NDArray[np.int32] | None)
found = jittok.compare(tok, tok, ["a"])
assert_type(found, Comparison)
trained = jittok.train(["a b"], size=300, pre="gpt-2", like="hf", special=["<s>"])
assert_type(trained, Trained)
assert_type(jittok.compare("gpt-2", tok), Machines)
words = jittok.train.count(["a"], how=How())
made = jittok.convert(tok, "x.json", to="tokenizer.json")
assert_type(made, Converted)
assert_type(words, Counts)
aligned = tok.align_batch(["a"], unit="characters")
names: list[str] = jittok.bundled_names()
eos: int | None = tok.eos_id
