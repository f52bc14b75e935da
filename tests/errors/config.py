"""Flags and variables of the environment that are wrong; compiled files that cannot be kept."""

from __future__ import annotations

from tests.errors.entries import raises
from tracejit import config
from tracejit.config import Flags, flags
from tracejit.logs import emit


@raises(ValueError, "flags.mode: expected one of eager, graph, python, compiled; got 'fast'")
def unknown_mode(jit):
    flags.mode = "fast"  # here


@raises(ValueError, "flags.max_entries: expected an integer of at least 1; got 0")
def number_that_is_too_small(jit):
    flags.max_entries = 0  # here


@raises(ValueError, "flags.num_threads: expected an integer of at least 0; got 'all'")
def number_that_is_a_text(jit):
    flags.num_threads = "all"  # here


@raises(ValueError, "flags.check_nans: expected True or False; got 1")
def switch_that_is_a_number(jit):
    flags.check_nans = 1  # here


@raises(
    ValueError,
    "flags.logs: expected names among guards, recompiles, graph, joint, passes, fusion, "
    "kernels, memory, breaks; got 'graphs'",
)
def unknown_log(jit):
    flags.logs = "graphs"  # here


@raises(ValueError, "flags.cache_dir: expected a path; got 3")
def path_that_is_none(jit):
    flags.cache_dir = 3  # here


@raises(ValueError, "flags.cache_dir: there is no home directory for '~nobody-of-that-name/cache'")
def home_of_nobody(jit):
    flags.cache_dir = "~nobody-of-that-name/cache"  # here


@raises(
    AttributeError,
    "no flag named 'modes'; did you mean mode? flags: mode, numerics, target, cache_dir, "
    "num_threads, logs, tracebacks, print_after, progress, verify_passes, check_nans, "
    "max_entries, max_bindings, max_segments, max_segment_nodes",
)
def unknown_flag(jit):
    with config.override(modes="graph"):  # here
        pass


@raises(AttributeError, "flags.mode cannot be deleted; assign its default instead")
def flag_is_deleted(jit):
    del flags.mode  # here


@raises(ValueError, "TRACEJIT_MODE: expected one of eager, graph, python, compiled; got 'fast'")
def variable_of_a_mode(jit):
    Flags({"TRACEJIT_MODE": "fast"})  # here


@raises(ValueError, "TRACEJIT_MAX_ENTRIES: expected an integer of at least 1; got 'many'")
def variable_of_a_number(jit):
    Flags({"TRACEJIT_MAX_ENTRIES": "many"})  # here


@raises(ValueError, "TRACEJIT_CHECK_NANS: expected 1 or 0, true or false, on or off; got 'maybe'")
def variable_of_a_switch(jit):
    Flags({"TRACEJIT_CHECK_NANS": "maybe"})  # here


@raises(
    ValueError,
    "no log artifact 'graphs'; known: guards, recompiles, graph, joint, passes, fusion, "
    "kernels, memory, breaks",
)
def unknown_artifact(jit):
    emit("graphs", "text")  # here
