import pyro
import pyro.distributions as dist
import torch
from given import array
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta


def functions():
    pyro.clear_param_store()

    def model(x, y):
        weight = pyro.sample("weight", dist.Normal(0.0, 1.0))
        scale = pyro.param("scale", torch.tensor(1.0), constraint=dist.constraints.positive)
        with pyro.plate("data", len(y)):
            pyro.sample("y", dist.Normal(weight * x, scale), obs=y)

    guide = AutoDelta(model, init_loc_fn=lambda site: torch.tensor(0.3))
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.02}), loss=Trace_ELBO())
    x = array(10)

    def step():
        return svi.step(x, x * 2 + 0.1)

    def density(value):
        conditioned = pyro.condition(model, data={"weight": value})
        return pyro.poutine.trace(conditioned).get_trace(x, x * 2).log_prob_sum().detach()

    return [("SVI step", step, []), ("log density", density, [torch.tensor(1.5)])]
