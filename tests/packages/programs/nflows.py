from given import array, filled, trained
from nflows.distributions import StandardNormal
from nflows.flows import Flow
from nflows.transforms import (
    CompositeTransform,
    MaskedAffineAutoregressiveTransform,
    ReversePermutation,
)


def functions():
    layers = []
    for _ in range(2):
        layers += [
            ReversePermutation(features=3),
            MaskedAffineAutoregressiveTransform(features=3, hidden_features=8),
        ]
    flow = filled(Flow(CompositeTransform(layers), StandardNormal(shape=[3])))
    step = trained(flow, lambda m, x: -m.log_prob(inputs=x).mean())
    return [("maximum likelihood step", step, [array(6, 3)])]
