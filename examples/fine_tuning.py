"""Rows for fine-tuning a model that answers questions: windows of long contexts, padded to one length."""

import jittok

questions = ["where was the library?", "who wrote of it?"]
contexts = ["The library of Alexandria was in Egypt. " * 40, "Plutarch wrote of it."]
tok = jittok.bundled("bert")
rows = tok.encode_batch(
    questions, contexts, max_length=64, overlap=16, truncation="only_second", windows=True, add_special=True
)
ids, mask, types = rows.to_padded(64)  # to_padded(64).to_torch(): the same memory as tensors
print(rows, "of texts", rows.row_of.tolist(), ids.shape, types[0, :12].tolist())
for row in range(len(rows)):  # answers lie in a part of the context: spans say where each id is
    spans = rows[row : row + 1].spans()[rows[row : row + 1].sequences == 1]
    print(row, "covers", spans[0, 0], "to", spans[-1, 1], "of the context", rows.row_of[row])
