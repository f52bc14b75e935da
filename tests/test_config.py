"""Flags: from the environment, by assignment, for a while; each mistake named where it is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracejit
from tracejit import config, logs
from tracejit.config import Flags
from tracejit.jit.passes.pipeline import PASSES


@pytest.fixture
def flags_kept():
    before = dict(vars(config.flags))
    yield config.flags
    vars(config.flags).clear()
    vars(config.flags).update(before)


def test_defaults():
    flags = Flags({})
    assert (flags.mode, flags.numerics, flags.logs, flags.print_after) == (
        "compiled", "fast", (), ())
    assert (flags.num_threads, flags.max_entries, flags.max_bindings) == (0, 64, 128)
    assert flags.cache_dir.name == "tracejit" and flags.cache_dir.is_absolute()
    assert flags.verify_passes is True, "pytest is running"
    assert flags.check_nans is False


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("TRACEJIT_MODE", "graph", "mode", "graph"),
        ("TRACEJIT_NUMERICS", "eager", "numerics", "eager"),
        ("TRACEJIT_TARGET", "x86-64-v3", "target", "x86-64-v3"),
        ("TRACEJIT_CACHE_DIR", "/some/where", "cache_dir", Path("/some/where")),
        ("TRACEJIT_NUM_THREADS", "3", "num_threads", 3),
        ("TRACEJIT_LOGS", "guards, fusion", "logs", ("guards", "fusion")),
        ("TRACEJIT_PRINT_AFTER", "fold,cse", "print_after", ("fold", "cse")),
        ("TRACEJIT_VERIFY", "0", "verify_passes", False),
        ("TRACEJIT_VERIFY", "", "verify_passes", True),
        ("TRACEJIT_CHECK_NANS", "on", "check_nans", True),
        ("TRACEJIT_MAX_ENTRIES", "2", "max_entries", 2),
    ],
)
def test_environment(variable, text, name, value):
    assert vars(Flags({variable: text}))[name] == value


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("TRACEJIT_MODE", "fast", "TRACEJIT_MODE: expected one of eager, graph, python, compiled; "
                                  "got 'fast'"),
        ("TRACEJIT_NUM_THREADS", "-1", "TRACEJIT_NUM_THREADS: expected an integer of at least 0; "
                                       "got -1"),
        ("TRACEJIT_MAX_ENTRIES", "many", "TRACEJIT_MAX_ENTRIES: expected an integer of at least "
                                         "1; got 'many'"),
        ("TRACEJIT_VERIFY", "maybe", "TRACEJIT_VERIFY: expected 1 or 0, true or false, on or "
                                     "off; got 'maybe'"),
        ("TRACEJIT_LOGS", "guards,guard", "TRACEJIT_LOGS: expected names among guards, recompiles,"
                                          " graph, joint, passes, fusion, kernels, memory, "
                                          "breaks; got 'guard'"),
        ("TRACEJIT_PRINT_AFTER", "fuse", "TRACEJIT_PRINT_AFTER: expected names among open, sizes, "
                                         "fold, branches, simplify, cse, loops, products, "
                                         "sums, dce, all; got 'fuse'"),
    ],
)
def test_a_bad_variable_is_named(variable, text, message):
    with pytest.raises(ValueError) as error:
        Flags({variable: text})
    assert str(error.value) == message


def test_a_bad_variable_stops_the_import():
    run = subprocess.run(
        [sys.executable, "-c", "from tracejit import config"],
        env={**os.environ, "TRACEJIT_MODE": "slow"}, capture_output=True, text=True, timeout=60,
    )
    assert run.returncode == 1
    assert "ValueError: TRACEJIT_MODE: expected one of eager" in run.stderr


def test_assignment_is_checked(flags_kept):
    flags_kept.mode = "graph"
    assert flags_kept.mode == "graph"
    for name, value in [("mode", "x"), ("max_entries", 0), ("max_entries", True),
                        ("verify_passes", 1), ("cache_dir", 3)]:
        with pytest.raises(ValueError, match=rf"flags\.{name}: expected .*; got"):
            setattr(flags_kept, name, value)
    with pytest.raises(AttributeError, match=r"no flag named 'modes'; did you mean mode\? flags"):
        flags_kept.modes = "graph"
    with pytest.raises(AttributeError, match=r"flags\.mode cannot be deleted"):
        del flags_kept.mode
    assert flags_kept.mode == "graph"


def test_override_restores_also_after_an_error():
    before = config.flags.mode
    with pytest.raises(KeyError), config.override(mode="python", logs=["guards"]):
        assert (config.flags.mode, config.flags.logs) == ("python", ("guards",))
        raise KeyError
    assert (config.flags.mode, config.flags.logs) == (before, ())


def test_override_sets_all_or_nothing():
    before = config.flags.max_entries
    with pytest.raises(ValueError), config.override(max_entries=5, mode="x"):
        pass
    assert config.flags.max_entries == before


def test_reload_sets_all_or_nothing(flags_kept):
    flags_kept.reload({"TRACEJIT_MAX_BINDINGS": "7"})
    assert flags_kept.max_bindings == 7
    with pytest.raises(ValueError, match="TRACEJIT_MODE"):
        flags_kept.reload({"TRACEJIT_MAX_BINDINGS": "8", "TRACEJIT_MODE": "x"})
    assert flags_kept.max_bindings == 7


def test_cache_key_holds_what_a_program_depends_on():
    plain = config.cache_key()
    with config.override(numerics="eager"):
        assert config.cache_key() != plain
    with config.override(num_threads=7, logs="guards", max_entries=1):
        assert config.cache_key() == plain


def test_the_table_shows_every_flag_with_its_variable():
    shown = config.table(Flags({"TRACEJIT_LOGS": "guards,memory"}))
    for name, flag in config.DECLARED.items():
        line = next(x for x in shown.splitlines() if x.split()[0].rstrip("*") == name)
        assert flag.env in line and flag.help in line
    assert "guards,memory" in shown and "mode* " in shown


def test_variables_are_distinct():
    variables = [flag.env for flag in config.DECLARED.values()]
    assert len(set(variables)) == len(variables)


def test_logs_write_only_what_is_asked_for(capsys):
    with config.override(logs="guards"):
        logs.emit("guards", "x.dtype == float32\ny.ndim == 2")
        logs.emit("memory", "not asked for")
    logs.emit("guards", "no longer asked for")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "[tracejit guards] x.dtype == float32\n[tracejit guards] y.ndim == 2\n"


def test_an_unknown_artifact_lists_the_known():
    with pytest.raises(ValueError, match="no log artifact 'guard'; known: guards, recompiles"):
        logs.emit("guard", "text")


def test_the_passes_that_can_be_asked_for_are_those_there_are():
    assert [*config.PASSES] == [*(name for name, _ in PASSES), "all"]


def test_attributes_that_the_module_does_not_have_cannot_be_set():
    with pytest.raises(AttributeError, match=r"'mode'; did you mean config\.flags\.mode\?"):
        config.mode = "graph"
    with pytest.raises(AttributeError, match=r"'overide'; did you mean config\.override\?"):
        config.overide = None
    with pytest.raises(AttributeError, match=r"'speed'; flags are attributes of config\.flags"):
        config.speed = 3
    assert not {"mode", "overide", "speed"} & {*vars(config)}


def test_a_flag_that_a_program_reads_is_not_frozen(flags_kept):
    @tracejit.script
    def doubled(x):
        return x * 2 if tracejit.config.flags.max_entries == 64 else x

    first = doubled(tracejit.ones(1)).item()
    config.flags.max_entries = 63
    assert (first, doubled(tracejit.ones(1)).item()) == (2.0, 1.0)


def test_importing_the_flags_loads_nothing_heavy():
    """Loaded by path, so that what the package itself imports does not count."""
    source = Path(config.__file__)
    code = f"""
import importlib.util, sys, types
package = types.ModuleType("tracejit"); package.__path__ = [{str(source.parent)!r}]
sys.modules["tracejit"] = package
import tracejit.logs
heavy = {{"numpy", "numba", "scipy", "llvmlite"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_numerics_are_a_setting_where_nothing_else_is_asked_for():
    def tanh(x):
        return tracejit.tanh(x)

    x = tracejit.linspace(-4.0, 4.0, 999)
    exactly, fast = tanh(x).numpy(), tracejit.script(tanh, numerics="fast")
    f = tracejit.script(tanh)
    assert (f(x).numpy() != exactly).any(), "else this shows nothing"
    with config.override(numerics="eager"):
        assert (f(x).numpy() == exactly).all()
        assert (fast(x).numpy() != exactly).any(), "the argument comes first"
    assert (f(x).numpy() != exactly).any() and f.report().compiles == 2
