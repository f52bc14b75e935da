import torch
from captum.attr import IntegratedGradients, Saliency
from given import array, filled


def functions():
    net = filled(
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)), 0.5
    )
    integrated, saliency = IntegratedGradients(net), Saliency(net)

    def attributed(x):
        found = integrated.attribute(x, target=1, n_steps=10)
        return found, saliency.attribute(x.clone().requires_grad_(), target=2)

    return [("attributions", attributed, [array(3, 4)])]
