"""Character maps of Unigram vocabularies: read and checked (`xcda`), their keys, and the search for the longest one."""
