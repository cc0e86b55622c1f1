"""A Hugging Face dataset through the facade of transformers: map, a stable fingerprint, padded batches."""

from datasets import Dataset
from datasets.fingerprint import Hasher

import jittok
from jittok.compat import as_transformers

tokenizer = as_transformers(jittok.bundled("bert"), model_max_length=16)
texts = ["Hello world", "Rows of a dataset", "are tokenized by kernels."]
before = Hasher.hash(tokenizer)
rows = Dataset.from_dict({"text": texts}).map(lambda batch: tokenizer(batch["text"], truncation=True), batched=True)
batch = tokenizer.pad(rows.remove_columns("text").to_dict(), return_tensors="np")
print(batch["input_ids"], batch["attention_mask"].sum(axis=1), sep="\n")
assert Hasher.hash(tokenizer) == before  # so datasets finds its cache again
