"""A place in programs that expect another library's tokenizer: its methods over a jittok Tokenizer.

`as_tokenizers` (`tokenizers.Tokenizer`), `as_transformers` (a tokenizer of transformers), `as_tiktoken`
(`tiktoken.Encoding`), `as_sentencepiece` (`sentencepiece.SentencePieceProcessor`). Each gives what its library gives
for the same vocabulary, errors included. What is not there is a NotImplementedError that names jittok's own call.

`proof` asks the libraries themselves: `jittok try`.
"""

from jittok.compat.sentencepiece import as_sentencepiece
from jittok.compat.tiktoken import as_tiktoken
from jittok.compat.tokenizers import as_tokenizers
from jittok.compat.transformers import as_transformers

__all__ = ["as_sentencepiece", "as_tiktoken", "as_tokenizers", "as_transformers"]
