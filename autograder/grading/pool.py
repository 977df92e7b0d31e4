"""Workers forked from a process in which everything is loaded. One that dies takes nothing with it: its job is done again by another."""

import multiprocessing
import time
from collections import deque
from multiprocessing.connection import wait

from .. import jail

TRIES = 2  # a job that ends two workers is given up
PATIENCE = 600.0  # s; a worker that is silent for longer is stuck, since all that runs is bounded


def spread(function, jobs, workers):
    """(job, result) pairs as they come, the result None where the job was given up. `jobs` are taken only as workers get free."""
    pool = _Pool(function, workers)
    try:
        yield from pool.run(iter(jobs))
    finally:
        pool.close()


class _Worker:
    def __init__(self, function):
        start = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        context = multiprocessing.get_context(start)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(function, theirs, self.pipe), daemon=True)
        self.process.start()
        theirs.close()
        self.job, self.since = None, 0.0

    def give(self, job):
        self.job, self.since = job, time.monotonic()
        self.pipe.send(job)

    def end(self, patience=0.0):
        """Let go of it; one that has something to finish may be given a few seconds to put its jail away."""
        self.pipe.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()


def _serve(function, pipe, other):
    other.close()  # else the end of the parent would not be seen
    try:
        while True:
            pipe.send(_safely(function, pipe.recv()))
    except (EOFError, OSError, KeyboardInterrupt):
        jail.close()  # here, since a forked process ends without what it has to do at exit


def _safely(function, job):
    """(whether it worked, the result or the words for what went wrong)."""
    try:
        return True, function(job)
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


class _Pool:
    def __init__(self, function, workers):
        self.function, self.tried, self.again = function, {}, deque()
        self.workers = [_Worker(function) for _ in range(workers)]

    def run(self, jobs):
        for worker in self.workers:
            self._next(worker, jobs)
        while busy := [worker for worker in self.workers if worker.job is not None]:
            ready = wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                told = []
                if worker.pipe in ready:
                    told = list(self._taken(worker))
                elif time.monotonic() - worker.since > PATIENCE:
                    told = list(self._lost(worker, "took too long"))
                if worker.job is None:
                    self._next(worker, jobs)  # first, so that it works while what it gave is looked at
                yield from told

    def _next(self, worker, jobs):
        job = self.again.popleft() if self.again else next(jobs, None)
        if job is not None:
            try:
                worker.give(job)
            except OSError:  # it died while it had nothing to do
                self._replace(worker)
                worker.give(job)

    def _taken(self, worker):
        try:
            worked, result = worker.pipe.recv()
        except (EOFError, OSError):
            yield from self._lost(worker, "its process ended")
            return
        job, worker.job = worker.job, None
        self.tried.pop(id(job), None)
        yield job, result if worked else Failure(result)

    def _lost(self, worker, why):
        """The worker is gone, or must go: its job goes to another, if it was not the job's own fault."""
        job = worker.job
        self._replace(worker)
        self.tried[id(job)] = self.tried.get(id(job), 0) + 1
        if self.tried[id(job)] < TRIES:
            self.again.append(job)
        else:
            yield job, Failure(why)

    def _replace(self, worker):
        worker.end()
        worker.__init__(self.function)

    def close(self):
        for worker in self.workers[::-1]:  # a later one holds the pipes of those before it
            worker.end(patience=5.0 if worker.job is None else 0.0)


class Failure(str):
    """Why a job could not be done: a fault of ours, in words."""
