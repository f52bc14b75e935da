"""Graph networks from a list of edges: sums over neighbours, attention over neighbours, pooling."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class SAGEConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin_l, self.lin_r = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index
        total = torch.zeros_like(x).index_add_(0, dst, x[src])
        degree = torch.zeros(x.size(0)).index_add_(0, dst, torch.ones(src.size(0)))
        return self.lin_l(total / degree.clamp(min=1).unsqueeze(-1)) + self.lin_r(x)


class GATConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, outputs, bias=False)
        self.att_src = nn.Parameter(torch.empty(outputs))
        self.att_dst = nn.Parameter(torch.empty(outputs))
        nn.init.normal_(self.att_src, std=0.3)
        nn.init.normal_(self.att_dst, std=0.3)

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        h = self.lin(x)
        alpha = F.leaky_relu((h @ self.att_src)[src] + (h @ self.att_dst)[dst], 0.2)
        largest = torch.full((x.size(0),), float("-inf")).scatter_reduce(
            0, dst, alpha.detach(), reduce="amax")
        alpha = (alpha - largest[dst]).exp()
        norm = torch.zeros(x.size(0)).scatter_add_(0, dst, alpha)
        alpha = alpha / norm[dst]
        return torch.zeros(x.size(0), h.size(1)).index_add(0, dst, alpha.unsqueeze(-1) * h[src])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = SAGEConv(4, 8), GATConv(8, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x, edge_index, batch, graphs: int):
        x = F.elu(self.conv1(x, edge_index))
        x = self.conv2(x, edge_index)
        index = batch.unsqueeze(-1).expand_as(x)
        pooled = torch.zeros(graphs, x.size(1)).scatter_add(0, index, x)
        return self.out(pooled)


def model():
    return Net()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    @torch.compile
    def step(x, edge_index, batch, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edge_index, batch, y.size(0)), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    for nodes, edges in ((9, 20), (12, 25), (9, 20)):
        x = torch.from_numpy(rng.standard_normal((nodes, 4)).astype("float32"))
        ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
        more = torch.from_numpy(rng.integers(0, nodes, (2, edges)))
        batch = (torch.arange(nodes) * 3) // nodes
        edge_index = torch.cat([ring, more], dim=1)
        losses.append(step(x, edge_index, batch, torch.tensor([0, 1, 0])).item())
    return losses
