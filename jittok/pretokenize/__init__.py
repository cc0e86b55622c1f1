"""Where BPE words begin and end: the patterns as defined, the automata made of them, and the kernels that run those."""
