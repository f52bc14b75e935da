"""einsum against PyTorch's, and what it refuses."""

import numpy as np
import pytest

import tracejit

EQUATIONS = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij , jk": ((2, 3), (3, 4)),
    "bhid,bhjd->bhij": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "...ij,...jk->...ik": ((7, 2, 3), (3, 4)),
    "...a,...a->...": ((3, 1, 4), (2, 4)),
    "i...->...": ((2, 3, 4),),
    "ii->i": ((3, 3),),
    "ii": ((3, 3),),
    "iji->j": ((3, 2, 3),),
    "i,j->ij": ((3,), (4,)),
    "ij,ij->": ((2, 3), (2, 3)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "ba": ((2, 3),),
    "bi,bj->b": ((2, 3), (2, 4)),
    "ij,jk->ik ": ((2, 0), (0, 4)),
}  # fmt: skip


def drawn(shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.oracle
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_values_and_gradients_agree_with_pytorch(equation, captured):
    torch = pytest.importorskip("torch")
    arrays = drawn(EQUATIONS[equation])
    theirs = [torch.from_numpy(a).requires_grad_() for a in arrays]
    want = torch.einsum(equation, *theirs)
    ours = [tracejit.from_numpy(a).requires_grad_() for a in arrays]

    def function(*operands):
        return tracejit.einsum(equation, *operands)

    got = (tracejit.script(function) if captured else function)(*ours)
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)
    want.cos().sum().backward()
    got.cos().sum().backward()
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ijk->i", "i", "i1->i"])
def test_equations_that_do_not_fit(equation):
    with pytest.raises(RuntimeError, match="einsum"):
        tracejit.einsum(equation, tracejit.ones(2, 2))
