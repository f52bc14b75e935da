import linear_operator
import torch
from given import array
from linear_operator.operators import (
    DiagLinearOperator,
    LowRankRootLinearOperator,
    to_linear_operator,
)


def functions():
    def solved(root, diagonal, right):
        operator = LowRankRootLinearOperator(root) + DiagLinearOperator(diagonal)
        return torch.linalg.solve(operator, right), torch.logdet(operator), operator @ right

    def dense(root, right):
        matrix = root @ root.mT + 4 * torch.eye(6)
        operator = to_linear_operator(matrix)
        quad, logdet = linear_operator.inv_quad_logdet(operator, right, logdet=True)
        return quad, logdet, operator.diagonalization()[0].sum()

    root, right = array(6, 2), array(6, 3, seed=1)
    return [
        ("low rank plus diagonal", solved, [root, torch.ones(6), right]),
        ("dense", dense, [root, right]),
    ]
