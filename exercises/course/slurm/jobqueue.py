"""The same with dask-jobqueue, which submits the workers' jobs itself: `python exercises/course/slurm/jobqueue.py ps01_memory`.

An example to adapt: it has not been run on a cluster. `pip install dask-jobqueue==0.9.0` first; the rest is there already.
"""

import subprocess
import sys

from dask_jobqueue import SLURMCluster

JOBS, CORES = 4, 8

with SLURMCluster(cores=CORES, processes=CORES, memory="16GB", walltime="00:30:00", local_directory="/tmp") as cluster:
    cluster.scale(jobs=JOBS)
    sys.exit(subprocess.run(["psi", "grade", *sys.argv[1:], "--dask", cluster.scheduler_address]).returncode)
