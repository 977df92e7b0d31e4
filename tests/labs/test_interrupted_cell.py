"""A cell of a notebook that is interrupted while a job runs: the job's processes end, and the notebook works on."""

import subprocess
import time

import pytest
from jupyter_client.manager import start_new_kernel

from labs.launch import ROOT

HANG = "time.sleep(600)"
WELL = 'print(\'{"lab": ""}\')'
CELL = "from labs.launch import launch\nlaunch({script!r}, 2, launcher={launcher!r}).measurement"
PATIENCE, PAUSE = 300, 0.1  # seconds
STARTERS = {"fork": "labs.forkserver", "torchrun": "labs.agent"}


@pytest.fixture
def kernel():
    """The manager and client of a kernel of its own, started in the folder of the book."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT), startup_timeout=PATIENCE)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def wait_until(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(PAUSE)


def children(pid):
    """The command lines of a process's children, zombies left out."""
    table = subprocess.run(["ps", "-A", "-o", "ppid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    return [row[2] for row in rows if row[0] == str(pid) and not row[1].startswith("Z")]


def pid_of(manager):
    return manager.provisioner.pid


def reply_to(client, cell):
    """What the kernel answers to the execution of a cell, waited for; answers to other questions may come before."""
    while (message := client.get_shell_msg(timeout=PATIENCE))["parent_header"].get("msg_id") != cell:
        pass
    return message["content"]


def run(client, code):
    return reply_to(client, client.execute(code))


@pytest.mark.parametrize("launcher", STARTERS)
def test_a_job_under_way_ends(kernel, job, groups_left, launcher):
    manager, client = kernel
    script = job(HANG)
    cell = client.execute(CELL.format(script=str(script), launcher=launcher))
    wait_until(lambda: script.with_name("group0").exists() and script.with_name("group1").exists())
    assert groups_left()
    manager.interrupt_kernel()
    reply = reply_to(client, cell)
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert not groups_left()
    assert run(client, CELL.format(script=str(job(WELL)), launcher=launcher))["status"] == "ok"


def test_a_job_that_is_only_starting_ends(kernel, job):
    """While the process that is to fork the ranks still imports torch."""
    manager, client = kernel
    cell = client.execute(CELL.format(script=str(job(HANG)), launcher="fork"))
    wait_until(lambda: any(STARTERS["fork"] in line for line in children(pid_of(manager))))
    manager.interrupt_kernel()
    reply = reply_to(client, cell)
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    wait_until(lambda: not any(STARTERS["fork"] in line for line in children(pid_of(manager))))
    assert run(client, CELL.format(script=str(job(WELL)), launcher="fork"))["status"] == "ok"
