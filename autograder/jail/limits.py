"""What a jailed process may use up."""

import dataclasses

KIB, MIB = 1024, 1024**2


@dataclasses.dataclass(frozen=True)
class Limits:
    """Ceilings for one jailed process. Memory is counted on top of what the preloaded modules take."""

    seconds: float = 10.0  # by the clock on the wall
    cpu_seconds: int = 10  # of all its threads together
    memory_bytes: int = 1024 * MIB
    threads: int = 32
    open_files: int = 64
    file_bytes: int = 16 * MIB  # the largest single file
    disk_bytes: int = 64 * MIB  # everything in its work folder
    disk_entries: int = 1000
    output_bytes: int = MIB  # printed, by stdout and by stderr
    answer_bytes: int = MIB  # one message on the wire
    input_bytes: int = 16 * MIB  # what it is given: cells and files


def apply(limits, base_memory, base_threads):
    """Set the kernel's own limits; they can't be raised again, since the process has no capability left."""
    import resource

    ceilings = {
        resource.RLIMIT_AS: base_memory + limits.memory_bytes,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_NPROC: base_threads + limits.threads,  # counted per user, hence the base
        resource.RLIMIT_CORE: 0,  # a core file would hold the memory of the run
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for what, ceiling in ceilings.items():
        hard = resource.getrlimit(what)[1]
        ceiling = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
        resource.setrlimit(what, (ceiling, ceiling))
