/* Takes the spaces out of a text that WordPiece leaves in front of punctuation, by jittok's own kernel.

   cc -o clean clean.c -ldl
   ./clean "$(python -c 'from jittok.kernels.jit import shipped; print(shipped.library()[1]._name)')" "it 's fine , is n't it ?" */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "jittok.h"

int main(int count, char **arguments) {
    if (count != 3) return fprintf(stderr, "usage: clean LIBRARY TEXT\n"), 2;
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    jittok_entry *clean = (jittok_entry *)dlsym(library, "jittok__decode__rows__clean_spaces");
    if (!clean) return fprintf(stderr, "%s\n", dlerror()), 1;
    char *text = arguments[2];
    int64_t frame[3] = {0};
    jittok_array(frame, JITTOK_ARGUMENTS, text, (int64_t)strlen(text)); /* clean_spaces(text: OutU8) -> int */
    int64_t size = clean(frame);
    printf("%.*s\n", (int)size, text);
    return 0;
}
