"""Each marked line is an error for every checker (see test_types)."""

import jittok

tok = jittok.bundled("gpt-2")
jittok.laod("x")  # wrong
tok.encode_bach(["a"])  # wrong
tok.encode("a", add_special_tokens=True)  # wrong
tok.encode("a", errors="ignore")  # wrong
tok.encode(["a"])  # wrong
tok.encode_batch(5)  # wrong
tok.align_batch(["a"], unit="words")  # wrong
tok.encode_batch(["a"]).to_padded(pad_id=0, side="both")  # wrong
tok.encode_batch(["a"]).to_padded(pad_id="0")  # wrong
tok.decode_batch(5)  # wrong
jittok.train(["a"], siz=5)  # wrong
jittok.train(["a"], like="huggingface")  # wrong
jittok.convert(tok, "x", to="json")  # wrong
jittok.compare(tok, 5)  # wrong
jittok.load(5)  # wrong
eos = tok.eos_token_id  # wrong
tok("a")  # wrong
