"""Every flag, declared once: default, environment variable, help text, part of the cache key.

In: the environment, read when the package is imported, and assignments by the user.
Out: `flags`, whose attributes the rooms read. A bad value is refused where it is given, by name.

>>> with override(mode="python", max_entries=8):
...     print(flags.mode, flags.max_entries)
python 8
>>> flags.mode = "fast"
Traceback (most recent call last):
    ...
ValueError: flags.mode: expected one of eager, graph, python, compiled; got 'fast'

`docs/flags.md` is made from what stands here.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

__all__ = ["ARTIFACTS", "DECLARED", "Flag", "Flags", "MODES", "NUMERICS", "PASSES", "flags",
           "override", "table"]
T = TypeVar("T")

MODES = ("eager", "graph", "python", "compiled")
NUMERICS = ("fast", "eager")
TARGETS = ("native", "x86-64-v2", "x86-64-v3", "x86-64-v4")
TRACEBACKS = ("short", "full")
ARTIFACTS = {
    "guards": "what each captured program assumes, and which guard failed",
    "recompiles": "why a call needed a new program, or a new binding of one",
    "graph": "the captured graph",
    "joint": "the graph after differentiation",
    "passes": "node counts before and after each pass",
    "fusion": "which ops share a kernel, and why others do not",
    "kernels": "the source of the generated kernels",
    "memory": "the memory plan: buffers, reuse, peak",
    "breaks": "where capture stopped: file, line, reason, fix",
}
PASSES = {
    "open": "writes composites as the ops they consist of",
    "sizes": "replaces sizes known to be equal by one of them",
    "fold": "replaces constants by numbers",
    "branches": "computes both sides of small branches, and chooses",
    "simplify": "drops identities, conversions and views that change nothing",
    "cse": "computes equal nodes once",
    "loops": "moves costly work on numbers, which needs no other iteration, before its loop",
    "products": "computes products of rows that a loop keeps as one product, before the loop",
    "sums": "adds up products of a loop's iterations as one product after the loop",
    "dce": "drops nodes and writes that nothing reads",
    "all": "stands for every pass",
}


class Flag(Generic[T]):
    """Flag: its variable, its possible values, and its default."""

    def __init__(
        self,
        env: str,
        default: Callable[[], T],
        parse: Callable[[str], T],
        check: Callable[[Any], T],
        help: str,
        in_cache_key: bool = False,
        values: str = "",
        default_text: str = "",
    ):
        self.env, self.default, self.help = env, default, help
        self.parse, self.check, self.in_cache_key = parse, check, in_cache_key
        self.values = values  # for readers: the values it takes ...
        self.default_text = default_text  # ... and the default, where the machine decides it
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    # Only the type checker gets here: the value of each flag is an instance attribute, so that a
    # read on the way into a compiled call costs a dictionary look-up.
    def __get__(self, instance: object, owner: type) -> T:
        raise AttributeError(f"flags.{self.name} is read from `config.flags`")

    def from_environment(self, environ: Mapping[str, str]) -> T:
        """Return the value the environment gives, or the default."""
        text = environ.get(self.env, "").strip()
        if not text:
            return self.default()
        try:
            return self.parse(text)
        except ValueError as error:
            raise ValueError(f"{self.env}: {error}") from None


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}; got {value!r}")
        return str(value)

    return check


def _at_least(low: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ValueError(f"expected an integer of at least {low}; got {value!r}")
        return value

    return check


def _integer(low: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        return _at_least(low)(int(text) if text.lstrip("-").isdecimal() else text)

    return parse


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected True or False; got {value!r}")
    return value


def _switch(text: str) -> bool:
    if text.lower() in ("1", "true", "on", "yes"):
        return True
    if text.lower() in ("0", "false", "off", "no"):
        return False
    raise ValueError(f"expected 1 or 0, true or false, on or off; got {text!r}")


def _names(known: Mapping[str, str]) -> Callable[[Any], tuple[str, ...]]:
    def check(value: Any) -> tuple[str, ...]:
        given = value.split(",") if isinstance(value, str) else value
        names = tuple(name.strip() for name in given if name.strip())
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"expected names among {', '.join(known)}; got {unknown[0]!r}")
        return names

    return check


def _choice(env: str, default: str, choices: tuple[str, ...], help: str) -> Flag[str]:
    check = _one_of(choices)
    return Flag(env, lambda: default, check, check, help, True, ", ".join(choices))


def _count(env: str, default: int, help: str, low: int = 1) -> Flag[int]:
    values = f"an integer of at least {low}"
    return Flag(env, lambda: default, _integer(low), _at_least(low), help, values=values)


def _toggle(
    env: str, default: Callable[[], bool], help: str, in_key: bool = False, default_text: str = ""
) -> Flag[bool]:
    return Flag(env, default, _switch, _boolean, help, in_key, "1 or 0", default_text)


def _listing(env: str, known: Mapping[str, str], help: str) -> Flag[tuple[str, ...]]:
    return Flag(env, tuple, _names(known), _names(known), help, values=", ".join(known))


def _default_cache_dir() -> Path:
    """Return a folder in the user's folder for caches, else in the home, else in the system's
    temporary folder."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(chosen):
        home = os.path.expanduser("~")  # as HOME says, else the list of users
        chosen = os.path.join(home, ".cache") if os.path.isabs(home) else ""
    if chosen and _can_be_used(os.path.join(chosen, "tracejit")):
        return Path(chosen) / "tracejit"
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    return Path(_temporary_folder()) / f"tracejit{user}"


def _can_be_used(folder: str) -> bool:
    """Return True if the folder is there to be read, or can be made."""
    wanted = os.R_OK | os.X_OK
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder, wanted = os.path.dirname(folder), os.W_OK | os.X_OK
    return os.path.isdir(folder) and os.access(folder, wanted)


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.path.abspath(os.sep)  # there is none: the cache will say so


def _path(value: Any) -> Path:
    """Return the absolute path: a later `chdir` does not move it."""
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"expected a path; got {value!r}")
    path = os.path.expanduser(os.fsdecode(value))
    if path.startswith("~"):
        raise ValueError(f"there is no home directory for {value!r}")
    try:
        return Path(os.path.abspath(path))
    except OSError as error:  # the working directory is gone
        raise ValueError(f"{value!r} is no absolute path ({error.strerror})") from None


class Flags:
    """Flags and their values. Assignments are checked; they hold for the whole process."""

    mode = _choice(
        "TRACEJIT_MODE", "compiled", MODES,
        "eager: the plain function; graph: the IR op by op; python: generated kernels as plain "
        "Python; compiled: native kernels",
    )
    numerics = _choice(
        "TRACEJIT_NUMERICS", "fast", NUMERICS,
        "fast: documented error bounds; eager: bit for bit what eager mode gives",
    )
    target = _choice(
        "TRACEJIT_TARGET", "native", TARGETS,
        "processor that native kernels are for: this machine's, or a baseline of many machines",
    )
    cache_dir = Flag(
        "TRACEJIT_CACHE_DIR", _default_cache_dir, _path, _path, "where compiled kernels are kept",
        values="a folder", default_text="$XDG_CACHE_HOME/tracejit, else ~/.cache/tracejit",
    )
    num_threads = _count(
        "TRACEJIT_NUM_THREADS", 0, "worker threads; 0: affinity and cgroup quota decide", low=0
    )
    logs = _listing("TRACEJIT_LOGS", ARTIFACTS, "artifacts written to stderr, comma separated")
    tracebacks = Flag(
        "TRACEJIT_TRACEBACKS", lambda: "short", _one_of(TRACEBACKS), _one_of(TRACEBACKS),
        "short: errors show the user's frames and a note; full: tracejit's frames, too",
        values=", ".join(TRACEBACKS),
    )
    print_after = _listing(
        "TRACEJIT_PRINT_AFTER", PASSES, "print the graph after these passes, comma separated"
    )
    progress = _toggle(
        "TRACEJIT_PROGRESS", lambda: True,
        "show on a terminal what a compile of more than 2 s does (pip install tracejit[progress])",
    )
    verify_passes = _toggle(
        "TRACEJIT_VERIFY", lambda: "pytest" in sys.modules,
        "check the graph after every pass; on by default under pytest", default_text="0",
    )
    check_nans = _toggle(
        "TRACEJIT_CHECK_NANS", lambda: False,
        "stop at the first kernel that writes a NaN and name its line", in_key=True,
    )
    max_entries = _count("TRACEJIT_MAX_ENTRIES", 64, "programs kept per captured function")
    max_bindings = _count("TRACEJIT_MAX_BINDINGS", 128, "input shapes kept per program")
    max_segments = _count("TRACEJIT_MAX_SEGMENTS", 512, "compiled graphs kept in the process")
    max_segment_nodes = _count(
        "TRACEJIT_MAX_SEGMENT_NODES", 400_000,
        "nodes recorded before a segment is cut; compiling takes some 15 kB for each",
    )

    def __init__(self, environ: Mapping[str, str] | None = None):
        self.reload(environ)

    def reload(self, environ: Mapping[str, str] | None = None) -> None:
        """Take every value from a mapping, or the environment; nothing changes when one is bad."""
        environ = os.environ if environ is None else environ
        values = {name: flag.from_environment(environ) for name, flag in DECLARED.items()}
        vars(self).update(values)
        _tell()

    def __setattr__(self, name: str, value: object) -> None:
        vars(self)[name] = _checked(name, value)
        _tell()

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"flags.{name} cannot be deleted; assign its default instead")

    def __repr__(self) -> str:
        return table(self)


watches: list[Callable[[], None]] = []  # called when flags change


def _tell() -> None:
    for watch in watches:
        watch()


DECLARED: dict[str, Flag[Any]] = {k: f for k, f in vars(Flags).items() if isinstance(f, Flag)}


def near(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Return "; did you mean ...?" where known names are spelt much like `name`; else ""."""
    import difflib  # only a mistake needs it

    found = difflib.get_close_matches(name, list(known), 2, 0.7)
    return f"; did you mean {' or '.join(prefix + other for other in found)}?" if found else ""


def _checked(name: str, value: object) -> object:
    if name not in DECLARED:
        meant = near(name, DECLARED)
        raise AttributeError(f"no flag named {name!r}{meant or ';'} flags: {', '.join(DECLARED)}")
    try:
        return DECLARED[name].check(value)
    except ValueError as error:
        raise ValueError(f"flags.{name}: {error}") from None


flags = Flags()


@contextmanager
def override(**values: object) -> Iterator[Flags]:
    """Set flags for the length of a `with` block, in the whole process.

    Raises AttributeError for an unknown name and ValueError for a bad value, before any is set.

    >>> with override(verify_passes=True):
    ...     flags.verify_passes
    True
    """
    checked = {name: _checked(name, value) for name, value in values.items()}
    before = {name: vars(flags)[name] for name in checked}
    vars(flags).update(checked)
    _tell()
    try:
        yield flags
    finally:
        vars(flags).update(before)
        _tell()


def cache_key() -> tuple[tuple[str, object], ...]:
    """Return the values a compiled program depends on, as name and value pairs in declared
    order."""
    return tuple((name, vars(flags)[name]) for name, f in DECLARED.items() if f.in_cache_key)


def table(of: Flags = flags) -> str:
    """Return every flag with its value, variable and meaning, one per line; `*`: in the cache
    key."""
    rows = [("flag", "value", "variable", "meaning")]
    for name, flag in DECLARED.items():
        value = vars(of)[name]
        shown = ",".join(value) or "-" if isinstance(value, tuple) else str(value)
        rows.append((name + "*" * flag.in_cache_key, shown, flag.env, flag.help))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, [*widths, 0])) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


class _Config(ModuleType):
    """Class of this module: `config.mode = ...` is an error, for it would set nothing."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in vars(self) and not (name.startswith("__") and name.endswith("__")):
            raise AttributeError(_unknown(name))
        super().__setattr__(name, value)


def _unknown(name: str) -> str:
    """Return the text of an error that leads from a wrong name of the module to the right one."""
    meant = near(name, DECLARED, "config.flags.") or near(name, __all__, "config.")
    text = f"module 'tracejit.config' has no attribute {name!r}{meant}"
    return text if meant else f"{text}; flags are attributes of config.flags"


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__file__", "__name__"]


sys.modules[__name__].__class__ = _Config
