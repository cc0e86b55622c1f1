/* The kernels of jittok from C.

   Every entry has the same type: it takes the address of a frame and gives an int64, most often a count or a negative
   code that the kernel's docstring names. A frame is an array of int64 words:

     word 0      0 in front of the call; not 0 behind it: the call has failed (code with checked indices alone)
     then        the arguments of the Python function, in their order, without gaps:
       int         one word
       float       one word, the bits of a double
       an array    two words: address of the first element, count of elements (not bytes); one dimension, contiguous
       NamedTuple  the words of its fields, in their order

   U8, U16, U32, U64, I32, I64, F32 are arrays that are read; OutU8 ... OutF64 are written to. The caller owns all
   memory. A kernel allocates nothing, keeps nothing and takes no lock: threads may call it at once, each with a frame
   and output arrays of its own.

   Symbols: the Python name with two underscores for each dot. The kernel clean_spaces of jittok/decode/rows.py is
   jittok__decode__rows__clean_spaces. Which library a processor runs: int32_t jittok_cpu_level(void) of
   jittok-linux-x86_64-cpu.so, 1 to 4; call code of a higher level and the processor stops with an illegal instruction.

   Sizes are believed: what a docstring asks of its arrays is not checked again. Signatures may change with each version
   of jittok; manifest.json beside the libraries names the version and all entries. */

#ifndef JITTOK_H
#define JITTOK_H

#include <stdint.h>

typedef int64_t jittok_entry(int64_t *frame);
typedef int32_t jittok_cpu_level(void);

enum { JITTOK_STATUS = 0, JITTOK_ARGUMENTS = 1 };

/* Lay an array at a word of a frame; the place of the next argument. */
static inline int jittok_array(int64_t *frame, int at, const void *data, int64_t count) {
    frame[at] = (int64_t)(intptr_t)data;
    frame[at + 1] = count;
    return at + 2;
}

static inline int jittok_int(int64_t *frame, int at, int64_t value) {
    frame[at] = value;
    return at + 1;
}

#endif
