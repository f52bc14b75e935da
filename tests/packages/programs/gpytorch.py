import gpytorch
import torch
from given import array


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def functions():
    x = torch.linspace(0, 1, 12)
    y = torch.sin(x * 6) + 0.05 * array(12)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood)
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step():
        model.train()
        likelihood.train()
        optimizer.zero_grad()
        loss = -marginal(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def predicted(points):
        model.eval()
        likelihood.eval()
        with torch.no_grad():
            found = likelihood(model(points))
            return found.mean, found.variance

    return [("marginal likelihood", step, []), ("prediction", predicted, [x[::3] + 0.01])]
