"""The vocabulary types, one module or package each: `compile_pipeline` turns a tokenizer into flat arrays, and the
kernel `encode_fragments` turns text into ids with them. `vocab_types` holds what is known of a type without its
kernels.
"""
