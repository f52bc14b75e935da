"""Runs a command under a seccomp filter, as containers have: no process may read another's memory.

    python tests/distributed/no_ptrace.py command argument ...

Exits with 77 where the system has no filters, or the machine is unknown.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

# process_vm_readv, process_vm_writev, ptrace
CALLS = {"x86_64": (310, 311, 101), "aarch64": (270, 271, 117)}
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # instructions of the filter
_ALLOW, _NOT_PERMITTED = 0x7FFF0000, 0x00050000 | 1
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def forbid(calls: tuple[int, ...]) -> bool:
    """Let these system calls fail in this process and its children; return False if it cannot."""
    lines = [(_LOAD, 0, 0, 0)]
    lines += [(_EQUAL, len(calls) - k, 0, call) for k, call in enumerate(calls)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOT_PERMITTED)]
    code = b"".join(struct.pack("HBBI", *line) for line in lines)
    held = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(lines), ctypes.addressof(held))
    control = ctypes.CDLL(None).prctl
    if control(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    return not control(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)


if __name__ == "__main__":
    if platform.machine() not in CALLS or not forbid(CALLS[platform.machine()]):
        sys.exit(77)
    os.execvp(sys.argv[1], sys.argv[1:])
