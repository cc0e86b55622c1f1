"""A document store for retrieval: documents cut into pieces that a model with 64 tokens takes whole, found by words."""

from collections import Counter

import jittok

documents = {
    "library": "The library of Alexandria was in Egypt. It held scrolls from many lands. " * 12,
    "printing": "Movable type was first made in China. Presses came to Europe later. " * 12,
}
tok = jittok.bundled("bert")
rows = tok.chunks_batch(list(documents.values()), 64, overlap=16, by="sentence", add_special=True)
names = list(documents)
store = [(names[row], piece, Counter(piece.text.lower().split())) for row in range(len(rows)) for piece in rows[row]]
print(rows, "longest", rows.counts.max())
question = "where were scrolls held"
name, piece, _ = max(store, key=lambda entry: sum(entry[2][word] for word in question.split()))
print(name, piece.start, piece.stop, repr(piece.text[:40]))
ids, mask, _ = tok.encode_batch([piece.text for _, piece, _ in store], add_special=True).to_padded(64)
print(ids.shape, int(mask.sum(1).max()))
