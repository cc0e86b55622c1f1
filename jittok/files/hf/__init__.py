"""tokenizer.json, the file of Hugging Face's `tokenizers`: its model, its steps, its added tokens and templates."""
