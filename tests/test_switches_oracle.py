"""Switches that programs set for how numbers are computed: they take what PyTorch's take."""

from importlib import import_module

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
(m.set_deterministic_debug_mode('warn'), m.get_deterministic_debug_mode())
m.is_deterministic_algorithms_warn_only_enabled()
(m.use_deterministic_algorithms(False, warn_only=True), m.get_deterministic_debug_mode())
m.is_deterministic_algorithms_warn_only_enabled()
(m.set_deterministic_debug_mode(2), m.get_deterministic_debug_mode())
(m.set_deterministic_debug_mode('error'), m.are_deterministic_algorithms_enabled())
m.set_deterministic_debug_mode(3)
m.set_deterministic_debug_mode('x')
m.set_deterministic_debug_mode(1.5)
(m.set_deterministic_debug_mode('default'), m.get_deterministic_debug_mode())
(m.set_warn_always(True), m.is_warn_always_enabled())
(m.set_warn_always(False), m.is_warn_always_enabled())
m.set_warn_always(1)
m.set_num_interop_threads(0)
m.set_num_interop_threads(1.5)
m.get_num_interop_threads() > 0
m.backends.mha.get_fastpath_enabled()
(b('mha').set_fastpath_enabled(False), m.backends.mha.get_fastpath_enabled())
(m.backends.mha.set_fastpath_enabled(True), m.backends.mha.get_fastpath_enabled())
type(m.backends.mkl.is_available()), type(b('mkldnn').is_available())
type(b('openmp').is_available()), type(b('opt_einsum').is_available())
m.backends.mkldnn.enabled, m.backends.mkldnn.deterministic, m.backends.mkldnn.allow_tf32
b('mkldnn').set_flags(_enabled=False), b('mkldnn').set_flags(True)
inside(b('mkldnn').flags(enabled=False), 'mkldnn', 'enabled')
inside(b('mkldnn').flags(enabled=True, deterministic=True), 'mkldnn', 'deterministic')
inside(b('opt_einsum').flags(enabled=False), 'opt_einsum', 'enabled')
""".strip().splitlines()


def shown(library, call):
    def b(name):
        return import_module(f"{library.__name__}.backends.{name}")

    def inside(context, name, switch):
        with context:
            return getattr(b(name), switch)

    try:
        return repr(eval(call, {"m": library, "b": b, "inside": inside}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_switches_are_pytorch_s():
    """In this order, after what other tests may have set in one of both."""
    for library in (tracejit, torch):
        library.use_deterministic_algorithms(False)
        library.set_warn_always(False)
        library.backends.mha.set_fastpath_enabled(True)
    found, wanted = ([f"{call}: {shown(library, call)}" for call in CALLS]
                     for library in (tracejit, torch))
    assert found == wanted


def test_flags_are_as_before_after_a_block():
    for name in ("mkldnn", "opt_einsum"):
        module = getattr(tracejit.backends, name)
        before = module.set_flags()
        with module.flags(enabled=True):
            assert module.enabled
        assert module.set_flags() == before


def test_threads_side_by_side_are_set_once(monkeypatch):
    monkeypatch.setattr(tracejit.backends._Asked, "interop_threads", None)
    tracejit.set_num_interop_threads(3)
    assert tracejit.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="cannot set number of interop threads after parallel"):
        tracejit.set_num_interop_threads(3)


def test_switches_are_asked_at_each_call_of_a_program():
    @tracejit.script
    def doubled(x):
        mode = tracejit.get_deterministic_debug_mode()
        tracejit.set_deterministic_debug_mode(2 - mode)
        return x * 2, mode

    assert [doubled(tracejit.ones(1))[1] for _ in range(4)] == [0, 2, 0, 2]
    assert tracejit.get_deterministic_debug_mode() == 0
