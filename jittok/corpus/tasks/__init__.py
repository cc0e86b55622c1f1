"""Tasks: a corpus is planned as runs of ranges that are encoded and written on their own, in any order and anywhere.

A task is done when its record exists. A task that was killed is done again from its start, with the same bytes, so a
crash costs the tasks that were under way and nothing else.
"""
