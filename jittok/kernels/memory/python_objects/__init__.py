"""What depends on the layout of Python's objects: texts read where they are, and a builtin that encodes one."""
