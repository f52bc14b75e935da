"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes, few of them frequent.

In: features, class indices sorted by frequency. Out: log-probabilities. The head has the frequent
classes and one entry for each cluster of rarer ones. A cluster is computed only for those rows
whose class is in it (Grave et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tracejit
from tracejit.nn import functional as F
from tracejit.nn.containers import ModuleList, Sequential
from tracejit.nn.linear import Linear
from tracejit.nn.module import Module


class ASMoutput(NamedTuple):
    """Result of the layer: log-probabilities of the targets, and the mean of their negatives."""

    output: Any
    loss: Any


_ASMoutput = ASMoutput


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of many classes in clusters, of which few rows compute the large ones. The
    first `cutoffs[0]` classes are in the head, the others in clusters that end at the next
    cutoffs.

    in_features  size of the vectors that are classified
    n_classes    number of classes, the frequent ones first
    cutoffs      increasing ints below n_classes
    div_value    each cluster's features are by this factor fewer than those before; default 4
    head_bias    True: the head has a bias; default False

    Input (N, in_features) or (in_features,); target (N,) or () of int64. A call returns `output`,
    the log-probabilities of the targets in their shape, and `loss` (), their negative mean. Raises
    ValueError for cutoffs that are not increasing, RuntimeError for targets that are no classes.
    Which rows a cluster is computed for depends on values: a captured function breaks there. The
    source is Grave et al., "Efficient softmax approximation for GPUs" (2016).

    >>> import tracejit
    >>> layer = tracejit.nn.AdaptiveLogSoftmaxWithLoss(8, 10, cutoffs=[2, 5])
    >>> layer(tracejit.ones(3, 8), tracejit.tensor([0, 4, 9])).output.shape
    tracejit.Size([3])
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int],
                 div_value: float = 4.0, head_bias: bool = False, device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = all(a < b for a, b in zip([0, *ends], [*ends, n_classes]))
        if not increasing or any(int(end) != end for end in ends):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in "
                             "an increasing order, where each value is between 1 and n_classes-1")
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        kind = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for k, (start, end) in enumerate(self._clusters()):
            # rarer classes get fewer features: there is little data for them
            hidden = int(in_features // div_value ** (k + 1))
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **kind),
                                        Linear(hidden, end - start, bias=False, **kind)))

    def _clusters(self) -> list[tuple[int, int]]:
        """First class and end of each cluster."""
        return list(zip(self.cutoffs, self.cutoffs[1:]))

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection:
                layer.reset_parameters()

    def forward(self, input: Any, target: Any) -> ASMoutput:
        self._check(input, target)
        rows, classes = (input, target) if target.dim() else (
            input.unsqueeze(0), target.unsqueeze(0))
        within, entry = rows.new_zeros(rows.shape[0]), classes
        for k, (start, end) in enumerate(self._clusters()):
            (chosen,) = ((classes >= start) & (classes < end)).nonzero(as_tuple=True)
            # no row of the batch is in this cluster: its layers need not run
            if not chosen.numel():
                continue
            logs = F.log_softmax(self.tail[k](rows[chosen]), dim=1)
            found = logs.gather(1, (classes[chosen] - start).unsqueeze(1)).squeeze(1)
            within = within.index_copy(0, chosen, found)
            entry = entry.index_fill(0, chosen, self.shortlist_size + k)
        head = F.log_softmax(self.head(rows), dim=1)
        # log P(entry of the head) + log P(class | cluster), which is 0 in the head
        output = within + head.gather(1, entry.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return ASMoutput(output if target.dim() else output.squeeze(0), loss)

    def _check(self, input: Any, target: Any) -> None:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.dim() and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(f"{target.dim()}D target tensor expects {target.dim() + 1}D input "
                               f"tensors, but found inputs with size {input.size()}")
        if ((target < 0) | (target >= self.n_classes)).any():
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values "
                               f"in range [{target.min().item()}, {target.max().item()}] were "
                               "found. ")

    def log_prob(self, input: Any) -> Any:
        """Log-probabilities (N, n_classes) of all classes."""
        head = F.log_softmax(self.head(input), dim=1)
        # log P(class) = log P(cluster) + log P(class | cluster)
        tails = [F.log_softmax(projection(input), dim=1)
                 + head[:, self.shortlist_size + k].unsqueeze(1)
                 for k, projection in enumerate(self.tail)]
        return tracejit.cat([head[:, :self.shortlist_size], *tails], 1)

    def predict(self, input: Any) -> Any:
        """Return the most likely class of each row."""
        head = self.head(input).argmax(1)
        # A row whose head prefers one of its own classes takes that, as in PyTorch.
        return tracejit.where(head < self.shortlist_size, head, self.log_prob(input).argmax(1))
