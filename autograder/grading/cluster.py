"""The same jobs on the workers of a Dask cluster, which need this project installed and neither the gradebook nor the course."""

from .pool import Failure
from .work import version

LOCAL = "local"


def spread(function, jobs, workers, address):
    """(job, result) pairs as they come; `address` is a scheduler's, or "local" for processes on this machine.

    A worker that dies has its jobs done by others; one that ends several workers is given up.
    """
    from distributed import Client, LocalCluster, as_completed

    local = LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) if address == LOCAL else None
    with Client(local or address) as client:
        try:
            _refuse_other_versions(client)
            shared = client.scatter(function, broadcast=True)
            yield from _collect(client, shared, iter(jobs), as_completed)
        finally:
            if local:
                local.close()


def _refuse_other_versions(client):
    others = {worker for worker, there in client.run(version).items() if there != version()}
    if others:
        raise RuntimeError(f"these workers have another version of the marking: {', '.join(sorted(others))}; install the same everywhere")


AHEAD = 4  # jobs sent out for each thread, so that none waits and none holds the whole class


def _collect(client, shared, jobs, as_completed):
    ahead = AHEAD * max(1, sum(client.nthreads().values()))
    waiting, running = {}, as_completed()
    more = lambda: _send(client, shared, next(jobs, None), waiting, running)
    for _ in range(ahead):
        more()
    for future in running:
        job = waiting.pop(future.key)
        yield job, Failure(str(future.exception())) if future.status == "error" else future.result()
        future.release()
        more()


def _send(client, shared, job, waiting, running):
    if job is not None:
        future = client.submit(_call, shared, job, pure=False)
        waiting[future.key] = job
        running.add(future)


def _call(function, job):
    return function(job)
