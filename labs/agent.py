"""torchrun that ends when whoever started it does; started by `labs.processes`.

    python -m labs.agent [torchrun's options] script.py [arguments]

Its stdin is a pipe that nobody writes to: it closes when the process at the other end is gone, however that ended.
"""

import os
import signal
import threading

from torch.distributed.run import main


def end_with_starter():
    """Wait, in a thread, for stdin to close; then end as on SIGTERM, ranks first. Ranks get an empty stdin."""
    pipe = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    threading.Thread(target=_wait, args=(pipe,), daemon=True).start()


def _wait(pipe):
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with_starter()
    main()
