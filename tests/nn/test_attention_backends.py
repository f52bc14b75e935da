"""Names that choose attention kernels: accepted, answered, and without influence on results."""

from __future__ import annotations

import pytest

import tracejit
from tracejit.backends import cuda
from tracejit.nn import functional as F
from tracejit.nn.attention import SDPBackend, sdpa_kernel


def switched():
    return (cuda.math_sdp_enabled(), cuda.flash_sdp_enabled(), cuda.mem_efficient_sdp_enabled(),
            cuda.cudnn_sdp_enabled())  # fmt: skip


def test_contexts_nest():
    assert switched() == (True,) * 4
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert switched() == (True, True, False, False)
        with pytest.warns(FutureWarning, match="sdp_kernel"), cuda.sdp_kernel(enable_math=False):
            assert switched() == (False, True, True, True)
        cuda.enable_math_sdp(False)
        cuda.enable_cudnn_sdp(True)
        assert switched() == (False, True, False, True)
    assert switched() == (True,) * 4
    with pytest.raises(AssertionError, match="instance of SDPBackend"):
        sdpa_kernel(3)


def test_attention_in_captured_functions():
    def attend(q):
        with sdpa_kernel(SDPBackend.MATH):
            y = F.scaled_dot_product_attention(q, q, q)
        return y + 1 if cuda.flash_sdp_enabled() else y

    captured, q = tracejit.script(attend, mode="graph"), tracejit.randn(1, 3, 4)
    for enabled in (True, False, True):
        cuda.enable_flash_sdp(enabled)
        tracejit.testing.assert_close(captured(q), attend(q))
    cuda.enable_flash_sdp(True)


def test_programs_are_not_written_to_files(tmp_path):
    with pytest.raises(NotImplementedError, match="state_dict"):
        tracejit.jit.save(tracejit.script(tracejit.nn.Linear(1, 1)), tmp_path / "m.pt")
    with pytest.raises(NotImplementedError, match="does not run"):
        tracejit.jit.load(tmp_path / "m.pt")


def test_contexts_are_decorators_too():
    @sdpa_kernel(SDPBackend.MATH)
    def inside():
        return switched()

    assert inside() == (True, False, False, False) and switched() == (True,) * 4

    @tracejit.random.fork_rng()
    def drawn(depth):
        x = tracejit.rand(2)
        return drawn(depth - 1) if depth else x

    before = tracejit.get_rng_state()
    for call in (drawn, tracejit.script(drawn)):
        call(1)
        assert tracejit.equal(tracejit.get_rng_state(), before)
    with tracejit.random.fork_rng():
        _, again = tracejit.rand(2), tracejit.rand(2)
    assert tracejit.equal(drawn(1), again)
    for context in (tracejit.autograd.set_multithreading_enabled(False),
                    tracejit.utils.checkpoint.set_checkpoint_debug_enabled(True)):
        assert context(lambda x: x + 1)(1) == 2
