"""What every job does alike: read its conditions, join the other ranks, say how far it is, print one measurement.

A job is a plain script that torchrun starts once per rank; it finds RANK and WORLD_SIZE in its environment and its
conditions on its command line, as NAME=VALUE.
"""

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}
PROGRESS = "progress: "
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of what getrusage counts in


def read_conditions(defaults, words):
    """`defaults` with the NAME=VALUE `words` put in, each read as what its default is. Raises SystemExit for others."""
    given = dict(word.partition("=")[::2] for word in words)
    if unknown := set(given) - set(defaults):
        raise SystemExit(f"unknown condition {sorted(unknown)[0]!r}; there are {', '.join(defaults)}")
    return defaults | {name: type(defaults[name])(value) for name, value in given.items()}


@contextlib.contextmanager
def together(device):
    """Inside, this process is one rank of the job; gives the torch device it works on."""
    torch.set_num_threads(1)
    place = torch.device(device, int(os.environ["LOCAL_RANK"])) if device == "cuda" else torch.device(device)
    if device == "cuda":
        torch.cuda.set_device(place)
    store, rank, world_size = next(dist.rendezvous("env://"))
    dist.init_process_group(BACKENDS[device], store=_of_this_attempt(store), rank=rank, world_size=world_size)
    try:
        yield place
    finally:
        dist.destroy_process_group()


def _of_this_attempt(store):
    """A corner of the store for this start of the job.

    When torchrun starts a job again, its agent keeps the store, and gloo would find the addresses of dead ranks in it. On several
    machines each agent counts its own restarts, so that the count names no place where all would meet: there the store stays whole.
    """
    if os.environ.get("GROUP_WORLD_SIZE", "1") != "1":
        return store
    return dist.PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def local(tensor):
    """The part of a tensor that lies on this rank."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def say(text):
    """Tell whoever watches rank 0 how far the job is."""
    if dist.get_rank() == 0:
        print(PROGRESS + text, file=sys.stderr, flush=True)


def gather(value):
    """`value` of every rank, in rank order."""
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, value)
    return everyone


def alike(values):
    """The one value that all ranks have. Raises SystemExit if theirs differ."""
    if any(value != values[0] for value in values):
        raise SystemExit(f"the ranks ought to measure the same, and measured {values}")
    return values[0]


def print_measurement(lab, conditions, numbers, started, packages=()):
    """Rank 0 prints the measurement as one line of JSON: machine, versions (also of `packages`), commit, conditions, numbers."""
    if dist.get_rank() == 0:
        print(json.dumps(measurement(lab, conditions, numbers, started, packages)), flush=True)


def measurement(lab, conditions, numbers, started, packages=()):
    """Everything somebody needs to judge the `numbers`, or to take them again."""
    return {
        "lab": lab,
        "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.monotonic() - started, 3),
        "machine": machine(conditions["device"]),
        "versions": {"python": platform.python_version(), "torch": torch.__version__} | {name: version(name) for name in packages},
        "commit": commit(),
        "conditions": {**conditions, "world_size": int(os.environ["WORLD_SIZE"]), "backend": dist.get_backend()},
        "numbers": numbers,
    }


def machine(device):
    """What it ran on, in words."""
    where = {"system": platform.system(), "processor": _processor(), "cores": os.cpu_count()}
    return where | ({"gpu": torch.cuda.get_device_name()} if device == "cuda" else {})


def _processor():
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(": ")[2]
    return platform.processor() or platform.machine()


def commit():
    """The commit the project stands at, with `+changes` if files differ from it; without a history what PSI_COMMIT says."""
    git = lambda *words: subprocess.run(["git", "-C", Path(__file__).parent, *words], capture_output=True, text=True, check=True).stdout
    try:
        return git("rev-parse", "--short=12", "HEAD").strip() + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("PSI_COMMIT", "")
