import opt_einsum
from given import array


def functions():
    a, b, c = array(3, 4, seed=1), array(4, 5, seed=2), array(5, 3, seed=3)
    path = opt_einsum.contract_expression("ij,jk,kl->il", (3, 4), (4, 5), (5, 3))
    return [
        ("contract", lambda *t: opt_einsum.contract("ij,jk,kl->il", *t), [a, b, c]),
        ("expression", lambda *t: path(*t), [a, b, c]),
        (
            "tensordot",
            lambda *t: opt_einsum.contract("ijk,jkl->il", *t),
            [array(2, 3, 4), array(3, 4, 5)],
        ),
    ]
