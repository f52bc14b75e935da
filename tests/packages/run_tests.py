"""Run pytest on the arguments, in a process where `torch` is whichever library started it."""

import sys

import pytest

sys.exit(pytest.main(sys.argv[1:]))
