"""Training that is killed and goes on: one rank after the other dies by kill -9, and all start again at the last checkpoint.

    JOB_FOLDER=where torchrun --nproc-per-node 4 --max-restarts 2 labs/jobs/checkpoint.py [NAME=VALUE …]

Takes the runs of labs/interruptions.py, compares their losses bit by bit, prints one line of JSON. What is done lies in
JOB_FOLDER, which all ranks must see, so that the job goes on from there when it is started again.
"""

import hashlib
import json
import os
import shutil
import signal
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from labs.conditions import CHECKPOINT
from labs.interruptions import UNINTERRUPTED, runs
from labs.jobs import ranks, tiny_gpt

LEARNING_RATE = 1e-3
# how the name of a saved tensor ends or begins: our word for it
PARTS = {"exp_avg": "first moments", "exp_avg_sq": "second moments", "step": "step counters"}


class Trainer:
    """A model with its optimizer, cut up over the ranks of `mesh`, and its checkpoints in `folder`."""

    def __init__(self, conditions, device, mesh, folder):
        self.conditions, self.device, self.group, self.folder = conditions, device, mesh.get_group(), folder
        self.model = tiny_gpt.build(conditions, device)
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)

    def step(self, step, before_update):
        """One step on this rank's part of the batch; returns the mean loss of all. `before_update` is called when gradients are there."""
        chance = torch.Generator().manual_seed(step)
        shape = (self.conditions["global_batch"], self.conditions["num_positions"] + 1)
        ids = torch.randint(self.conditions["vocab_size"], shape, generator=chance)
        mine = ids.chunk(self.group.size())[self.group.rank()].to(self.device)
        loss = tiny_gpt.next_token_loss(self.model, mine)
        loss.backward()
        before_update()
        self.optimizer.step()
        self.optimizer.zero_grad()
        mean = loss.detach() / self.group.size()
        dist.all_reduce(mean, group=self.group)
        return mean.item()

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def save(self, step):
        """Write the checkpoint of all steps before `step`, then remove the one before it."""
        before, started = newest(self.folder), time.monotonic()
        dcp.save(self.state(), checkpoint_id=self.folder / f"{step:06}", process_group=self.group)
        if self.group.rank() == 0:
            note(self.folder, "saves", {"seconds": time.monotonic() - started})
            if before:
                shutil.rmtree(before)

    def load(self):
        """Take up the newest checkpoint, if there is one; returns the step at which training goes on."""
        path, started = newest(self.folder), time.monotonic()
        if not path:
            return 0
        state = self.state()
        dcp.load(state, checkpoint_id=path, process_group=self.group)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        if self.group.rank() == 0:
            note(self.folder, "loads", {"seconds": time.monotonic() - started, "at": time.time()})
        return int(path.name)

    def fingerprints(self):
        """A hash of every tensor of the model and the optimizer, put together from all ranks."""
        state = {f"{name}/weight": weight for name, weight in self.model.named_parameters()}
        for name, weight in self.model.named_parameters():
            state |= {f"{name}/{key}": tensor for key, tensor in self.optimizer.state[weight].items()}
        whole = {name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor for name, tensor in state.items()}
        return {name: hashlib.sha256(tensor.detach().cpu().numpy().tobytes()).hexdigest() for name, tensor in whole.items()}


# --- what is written down between starts --------------------------------------------------------------------------------


def claim(home, conditions):
    """Make `home` this job's own. Raises SystemExit if a job under other conditions left something there."""
    home.mkdir(parents=True, exist_ok=True)
    mine, path = json.dumps({**conditions, "world_size": dist.get_world_size()}), home / "conditions.json"
    if path.exists() and path.read_text() != mine:
        raise SystemExit(f"{home} holds what a job under other conditions left there; remove it, or name another place in JOB_FOLDER")
    path.write_text(mine)


def newest(folder):
    """The path of the last complete checkpoint in `folder`, or None. Its metadata are written last."""
    return max((path.parent for path in folder.glob("*/.metadata")), default=None)


def note(folder, name, entry):
    with (folder / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def notes(folder, name):
    path = folder / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- the runs -----------------------------------------------------------------------------------------------------------


def take(run, conditions, device, folder):
    """Take `run` to its end, from wherever it stopped."""
    for num_ranks, until in run.phases:
        mesh = DeviceMesh(device.type, list(range(num_ranks)))
        done = newest(folder)
        if dist.get_rank() < num_ranks and not (done and int(done.name) >= until):
            phase(run, Trainer(conditions, device, mesh, folder), until)
        dist.barrier()


def phase(run, trainer, until):
    step = trainer.load()
    if step and len(run.phases) > 1:
        remember(trainer, step)
    while step < until:
        ranks.say(f"{run.name}: step {step + 1} of {until}")
        loss = trainer.step(step, lambda now=step: die_if_meant(run, now, trainer.folder))
        if trainer.group.rank() == 0:
            note(trainer.folder, "losses", {"step": step, "loss": loss.hex()})
        step += 1
        if step % trainer.conditions["every"] == 0 or step == until:
            trainer.save(step)
    if len(run.phases) > 1:
        remember(trainer, step)


def remember(trainer, step):
    found = trainer.fingerprints()
    if trainer.group.rank() == 0:
        note(trainer.folder, "fingerprints", {"step": step, "of": found})


def die_if_meant(run, step, folder):
    """Once in `run`, at its step, its rank dies as if the machine had lost its power."""
    if run.kill == (dist.get_rank(), step) and not notes(folder, "kills"):
        note(folder, "kills", {"at": time.time()})
        os.kill(os.getpid(), signal.SIGKILL)


# --- what came of them --------------------------------------------------------------------------------------------------


def found(run, folder, reference):
    """Numbers of one run: its losses against those of the `reference` run, what it did twice, what arrived unchanged."""
    losses = notes(folder, "losses")
    numbers = {"losses alike to the bit": sum(entry["loss"] == reference[entry["step"]] for entry in losses)}
    if run.kill:
        numbers["steps done again"] = len(losses) - len(reference)
    if len(run.phases) > 1:
        saved, loaded = notes(folder, "fingerprints")[:2]
        numbers["tensors alike to the bit"] = sum(loaded["of"][name] == hash_ for name, hash_ in saved["of"].items())
        numbers["last loss"] = float.fromhex(losses[-1]["loss"])
    return {f"{run.name}/{name}": number for name, number in numbers.items()}


def seconds(folders):
    """How long saving, loading and starting again took, in the middle of all times."""
    every = lambda name, key: [entry[key] for folder in folders for entry in notes(folder, name)]
    pairs = [(notes(folder, "kills"), notes(folder, "loads")) for folder in folders]
    restarts = [loads[0]["at"] - died[0]["at"] for died, loads in pairs if died and loads]
    times = {"save": every("saves", "seconds"), "load": every("loads", "seconds"), "restart": restarts}
    return {f"seconds to {name}": statistics.median(values) for name, values in times.items() if values}


def saved(path):
    """Bytes of tensors in a checkpoint by rank and category, and of its files, read from its own metadata."""
    metadata, parts = dcp.FileSystemReader(path).read_metadata(), {"files": sum(file.stat().st_size for file in path.iterdir())}
    for piece, place in metadata.storage_data.items():
        about = metadata.state_dict_metadata[piece.fqn]
        if isinstance(about, TensorStorageMetadata):
            part = "weights" if piece.fqn.startswith("model.") else PARTS[piece.fqn.rpartition(".")[2]]
            rank = place.relative_path.split("_")[2]  # of __rank_number.distcp
            key = part if part == "step counters" else f"checkpoint/{rank}/{part}"
            parts.setdefault(f"checkpoint/{rank}/master weights", 0)  # there are none in fp32
            chunk = next(chunk for chunk in about.chunks if piece.offset is None or chunk.offsets == piece.offset)
            parts[key] = parts.get(key, 0) + chunk.sizes.numel() * about.properties.dtype.itemsize
    return parts


def numbers_of(taken, folders, conditions):
    """Everything that was found, by name."""
    reference = {entry["step"]: entry["loss"] for entry in notes(folders[UNINTERRUPTED], "losses")}
    numbers = {"parameters": sum(p.numel() for p in tiny_gpt.build(conditions, "cpu").parameters())}
    numbers |= saved(newest(folders[UNINTERRUPTED])) | {"last loss": float.fromhex(reference[conditions["steps"] - 1])}
    for run in taken:
        numbers |= found(run, folders[run.name], reference)
    return numbers | seconds(folders.values())


def repeatable():
    """Let the same run give the same bits on a GPU too, where sums are otherwise added up in whatever order is fastest."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    torch.use_deterministic_algorithms(True)


def main():
    started = time.monotonic()
    conditions = ranks.read_conditions(CHECKPOINT, sys.argv[1:])
    repeatable()
    home = Path(os.environ.get("JOB_FOLDER", ".")) / "checkpoints"
    with ranks.together(conditions["device"]) as device:
        taken = runs(conditions, dist.get_world_size())
        if dist.get_rank() == 0:
            claim(home, conditions)
        folders = {run.name: home / run.name.replace(" ", "_") for run in taken}
        for run in taken:
            folders[run.name].mkdir(parents=True, exist_ok=True)
            take(run, conditions, device, folders[run.name])
        if dist.get_rank() == 0:
            ranks.print_measurement("checkpoint", conditions, numbers_of(taken, folders, conditions), started)
            shutil.rmtree(home)
        dist.barrier()


if __name__ == "__main__":
    main()
