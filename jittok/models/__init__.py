"""One file or package a vocabulary type: its arrays, how they are compiled, its kernels."""
