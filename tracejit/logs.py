"""Logs of the compiler, by artifact, on stderr.

In: `TRACEJIT_LOGS=guards,recompiles` or `config.flags.logs`. Out: prefixed lines on stderr. Every
room calls `emit`; text that is costly to make is made under `enabled`.
"""

import sys

from tracejit import config

ARTIFACTS = config.ARTIFACTS


def enabled(artifact: str) -> bool:
    """Return True if `artifact` is asked for.

    Raises ValueError, naming the known artifacts, when there is no such artifact.

    >>> with config.override(logs="fusion"):
    ...     enabled("fusion"), enabled("memory")
    (True, False)
    """
    if artifact not in ARTIFACTS:
        raise ValueError(f"no log artifact {artifact!r}; known: {', '.join(ARTIFACTS)}")
    return artifact in config.flags.logs


def emit(artifact: str, text: str) -> None:
    """Write `text` to stderr, each line prefixed with the artifact, when it is asked for."""
    if enabled(artifact):
        lines = text.splitlines() or [""]
        sys.stderr.write("".join(f"[tracejit {artifact}] {line}\n" for line in lines))
