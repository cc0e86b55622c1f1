"""llama.cpp's own view of Unicode: its tables (not Python's) and its permissive reading of UTF-8."""
