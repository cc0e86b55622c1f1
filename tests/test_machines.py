"""Machines that jittok does not run on say so at the import, whatever else is installed there."""

import pickle
import subprocess
import sys

import pytest

from jittok.errors import UnsupportedMachine, check_machine


def test_machines_of_64_bits_with_the_least_byte_first_will_do():
    check_machine("little", (1 << 63) - 1)


@pytest.mark.parametrize(
    ("byteorder", "maxsize", "found"),
    [("big", (1 << 63) - 1, "a big-endian machine"), ("little", (1 << 31) - 1, "a 32-bit Python")],
)
def test_other_machines_are_named(byteorder, maxsize, found):
    with pytest.raises(UnsupportedMachine, match=f"cannot run here: found {found}, expected") as caught:
        check_machine(byteorder, maxsize)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.process
@pytest.mark.parametrize(
    "change", ["sys.byteorder = 'big'", "sys.maxsize = (1 << 31) - 1", "sys._is_gil_enabled = lambda: False"]
)
def test_the_import_says_so_before_anything_else_is_imported(change):
    code = f"""
import sys
{change}
try:
    import jittok
except ImportError as error:
    print(type(error).__name__, "jittok" in sys.modules, "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "UnsupportedMachine False False\n"
