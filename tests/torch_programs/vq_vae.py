"""A codebook between encoder and decoder: nearest codes, gradients passed straight through."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, commitment_cost, decay=0.9):
        super().__init__()
        self._embedding = nn.Embedding(num_embeddings, embedding_dim)
        self._embedding.weight.data.normal_()
        self._embedding.weight.requires_grad = False
        self._commitment_cost, self._decay = commitment_cost, decay
        self.register_buffer("_ema_cluster_size", torch.zeros(num_embeddings))
        self.register_buffer("_ema_w", self._embedding.weight.data.clone())

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        flat = inputs.view(-1, self._embedding.embedding_dim)
        weight = self._embedding.weight
        distances = (torch.sum(flat ** 2, dim=1, keepdim=True) + torch.sum(weight ** 2, dim=1)
                     - 2 * torch.matmul(flat, weight.t()))
        indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(indices.shape[0], weight.shape[0])
        encodings.scatter_(1, indices, 1)
        quantized = torch.matmul(encodings, weight).view(inputs.shape)
        if self.training:
            with torch.no_grad():
                self._ema_cluster_size.mul_(self._decay).add_(
                    encodings.sum(0), alpha=1 - self._decay)
                n = self._ema_cluster_size.sum()
                sizes = (self._ema_cluster_size + 1e-5) / (n + len(weight) * 1e-5) * n
                self._ema_w.mul_(self._decay).add_(encodings.t() @ flat, alpha=1 - self._decay)
                self._embedding.weight.data.copy_(self._ema_w / sizes.unsqueeze(1))
        loss = self._commitment_cost * F.mse_loss(quantized.detach(), inputs)
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity


def model():
    return nn.ModuleDict({
        "encoder": nn.Conv2d(1, 3, 4, stride=2, padding=1), "vq": VectorQuantizer(6, 3, 0.25),
        "decoder": nn.ConvTranspose2d(3, 1, 4, stride=2, padding=1)})


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        vq_loss, quantized, perplexity = model["vq"](model["encoder"](x))
        loss = F.mse_loss(model["decoder"](quantized), x) + vq_loss
        loss.backward()
        optimizer.step()
        return loss.detach(), perplexity

    history = []
    for count in (6, 6, 3):
        x = torch.from_numpy(rng.standard_normal((count, 1, 6, 6)).astype("float32"))
        history.append([value.item() for value in step(x)])
    return history
