"""Two epochs of pytorch-lightning's Trainer. In: the number of processes, a path for the result."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pytorch_lightning as pl
import torch
from given import array, filled


class Fitted(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = filled(
            torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        )

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("checked", torch.nn.functional.mse_loss(self.net(x), y), sync_dist=True)

    def train_dataloader(self):
        return loader(self.trainer, array(16, 4), array(16, 1, seed=1))

    def val_dataloader(self):
        return loader(self.trainer, array(16, 4, seed=2), array(16, 1, seed=3))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


def loader(trainer, x, y):
    """Return batches of 8 rows; of each, a process has its part."""
    data = torch.utils.data.TensorDataset(x, y)
    sampler = torch.utils.data.DistributedSampler(
        data, trainer.world_size, trainer.global_rank, shuffle=False
    )
    return torch.utils.data.DataLoader(data, 8 // trainer.world_size, sampler=sampler)


def main():
    processes, path = int(sys.argv[1]), Path(sys.argv[2])
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=processes,
        strategy="ddp" if processes > 1 else "auto",
        default_root_dir=path.parent,
        logger=False,
        use_distributed_sampler=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module = Fitted()
    trainer.fit(module)
    if trainer.global_rank == 0:
        told = {name: float(trainer.callback_metrics[name]) for name in ("loss_epoch", "checked")}
        checkpoint = torch.load(trainer.checkpoint_callback.best_model_path, weights_only=False)
        path.write_text(json.dumps({
            "processes": trainer.world_size, "metrics": told,
            "parameters": [one.tolist() for one in module.parameters()],
            "saved": [one.tolist() for one in checkpoint["state_dict"].values()],
        }))  # fmt: skip


if __name__ == "__main__":
    main()
