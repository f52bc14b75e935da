"""Programs that keep what is each thread's own in a `threading.local`, seen from two threads."""

from __future__ import annotations

import threading

import tracejit as tj
from tests.capture.program_list import programs_in


class Settings(threading.local):
    shared = 2.0


class Prepared(threading.local):
    def __init__(self):
        self.scale = 1.0


def elsewhere(f, *arguments):
    """What a new thread gets."""
    found = []
    thread = threading.Thread(target=lambda: found.append(f(*arguments)))
    thread.start()
    thread.join()
    return found[0]


def _both(f, store):
    """Results here, in another thread, there with another value, and here again, changed."""

    def there():
        before = [f(tj.ones(1)) for _ in range(2)]
        store(7.0)
        return before + [f(tj.ones(1)) for _ in range(2)]

    store(3.0)
    found = [f(tj.ones(1)) for _ in range(3)]
    found += elsewhere(there)
    found += [f(tj.ones(1)) for _ in range(2)]
    store(4.0)
    return [*found, f(tj.ones(1)), f(tj.ones(1)), *elsewhere(there)]


def thread_local_is_read(jit):
    local = threading.local()
    f = jit(lambda x: x * getattr(local, "scale", 100.0))
    return _both(f, lambda scale: setattr(local, "scale", scale))


def thread_local_is_read_by_its_dict(jit):
    local = threading.local()
    f = jit(lambda x: x * local.__dict__.get("scale", 100.0))
    found = _both(f, lambda scale: setattr(local, "scale", scale))
    del local.scale
    return [*found, f(tj.ones(1)), f(tj.ones(1))]


def thread_local_of_a_class_is_read(jit):
    local = Settings()
    f = jit(lambda x: x * getattr(local, "scale", 100.0) + local.shared)
    found = _both(f, lambda scale: setattr(local, "scale", scale))
    local.shared = 5.0
    found += [f(tj.ones(1)), elsewhere(f, tj.ones(1))]
    Settings.shared = 6.0
    found += [f(tj.ones(1)), elsewhere(f, tj.ones(1))]
    Settings.shared = 2.0
    return found


def thread_local_with_a_constructor(jit):
    local = Prepared()
    f = jit(lambda x: x * local.scale)
    return _both(f, lambda scale: setattr(local, "scale", scale))


def thread_local_counts_calls(jit):
    local = threading.local()

    def f(x):
        local.calls = getattr(local, "calls", 0) + 1
        local.last = x * local.calls
        return local.last + 1

    f = jit(f)
    found = _both(f, lambda calls: setattr(local, "calls", calls))
    return [*found, local.calls, local.last]


def thread_local_is_made_in_the_call(jit):
    def f(x):
        local = Settings()
        local.scale = x * 2
        return local

    f = jit(f)
    found = [f(tj.ones(1) * k) for k in range(3)]
    return [local.scale for local in found], elsewhere(lambda: hasattr(found[0], "scale"))


PROGRAMS = programs_in(globals())
