"""The attacks: cells a hostile learner could hand in. Data only; test_attacks.py runs them.

Each cell finds `T`, a table of all an attacker may know (paths, ports, process numbers; not the secret), a `libc`, and
puts what it got into `loot`. `says` must be found in what came out: it proves that the attack ran as far as the wall.
`real` attacks are also run without a jail, where they must do harm: an attack that never worked would prove nothing. What
reaches for the machine itself is bounded and leaves at most an empty trial file, so that a broken wall breaks no more.
"""

# ruff: noqa: E501

import dataclasses

from autograder.jail import kernel, seccomp

PRELUDE = """
import os, sys, ctypes, time, socket, signal, struct, threading
T = {targets!r}
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
loot = 'nothing'
"""

REFUSED = "Read-only|Operation not permitted|Permission denied|No such file|not implemented|Bad file descriptor"

# The calls of this machine that may pass or are not merely refused; the others must be
_CALLS = [*seccomp.ALLOWED.values(), *seccomp.ABSENT.values(), *(numbers for numbers, _, _ in seccomp.guarded().values())]
LISTED = {numbers[seccomp._COLUMN.get(kernel.MACHINE, 0)] for numbers in _CALLS} - {None}
LISTED |= {335, 336}  # uretprobe and uprobe, for which Linux asks no filter: it ends whoever is not its own probe


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    code: str
    verdicts: str = "error"  # those it may end in, space separated
    says: str = REFUSED
    real: bool = False
    seconds: float = 20.0  # by the clock, which a busy machine makes long; attacks that wait say less

    @property
    def preload(self):
        """What its zygote has imported: the slow modules where it uses them."""
        return ("numpy", "sympy") if "numpy" in self.code or "sympy" in self.code else ()


READ = (
    Attack("read the key", "loot = open(T['key']).read()", real=True),
    Attack("read the gradebook", "import sqlite3; loot = list(sqlite3.connect(T['gradebook']).execute('select * from grade'))",
           says="unable to open", real=True),
    Attack("read another submission", "loot = open(T['other']).read()", real=True),
    Attack("list the submissions", "loot = os.listdir(T['folder'])", real=False),
    Attack("walk the whole disk", "loot = [n for _, _, names in os.walk('/') for n in names if n in ('key.yaml', 'gradebook.db')]", "ok", r"'loot': \[\]"),
    Attack("read the answers of the project", "import autograder; loot = open(os.path.dirname(autograder.__file__) + '/../pyproject.toml').read()"),
    Attack("list the project", "loot = os.listdir(os.path.dirname(sys.modules['autograder'].__file__) + '/..')"),
    Attack("read the project's history", "loot = open(os.path.dirname(sys.modules['autograder'].__file__) + '/../.git/HEAD').read()"),
    Attack("through a link of one's own", "os.symlink(T['key'], 'x'); loot = open('x').read()", real=True),
    Attack("through a hard link", "os.link(T['key'], 'x'); loot = open('x').read()"),
    Attack("through dots", "loot = open('../' * 40 + T['key'].lstrip('/')).read()", real=True),
    Attack("import the key", "sys.path.insert(0, T['folder']); import secret_module; loot = secret_module.answer", says="No module named", real=True),
    Attack("load the key as a library", "ctypes.CDLL(T['key'])", says="cannot open shared object|failed to map"),
    Attack("map the key", "import mmap; f = os.open(T['key'], os.O_RDONLY); loot = mmap.mmap(f, 0, prot=mmap.PROT_READ)[:]", real=True),
    Attack("chroot to it", "os.chroot(T['folder']); loot = open('/key.yaml').read()"),
    Attack("change into it", "os.chdir(T['folder']); loot = open('key.yaml').read()", real=True),
    Attack("open by handle", "call(303, -100, T['key'].encode(), ctypes.create_string_buffer(200), 0, 0)"),
    Attack("the environment", "loot = dict(os.environ)", "ok", "MPLBACKEND", real=True),
    Attack("the environment of the parent", "loot = open(f'/proc/{os.getppid()}/environ').read()"),
    Attack("the environment of the grader", "loot = open(f\"/proc/{T['grader']}/environ\").read()"),
    Attack("its own first environment", "loot = open('/proc/self/environ').read()", real=True),
    Attack("every open handle", """
loot = []
for handle in range(256):
    for read in (lambda: os.pread(handle, 200, 0), lambda: (os.set_blocking(handle, False), os.read(handle, 200))):
        try: loot.append(read())
        except OSError: pass
loot = str(loot)""", "ok", "loot", real=True),
    Attack("handles of the parent", "loot = os.listdir(f'/proc/{os.getppid()}/fd')"),
    Attack("take a handle of the grader", "p = os.pidfd_open(T['grader']); call(438, p, T['handle'], 0)"),
    Attack("memory of the grader", "m = open(f\"/proc/{T['grader']}/mem\", 'rb'); m.seek(id(m)); loot = m.read(100)"),
    Attack("memory of the parent by system call", """
b = ctypes.create_string_buffer(64); v = struct.pack('QQ', ctypes.addressof(b), 64)
call(310, os.getppid(), v, 1, struct.pack('QQ', id(b), 64), 1, 0)"""),
    Attack("its own memory, page by page", """
r, w = os.pipe(); found = []; here = id(object()) & ~0xFFF
marker = ''.join(['k', 'e', 'y', '-']).encode()
for page in range(here - (8 << 20), here + (8 << 20), 4096):
    if libc.write(w, ctypes.c_void_p(page), 4096) == 4096:
        data = os.read(r, 4096); at = data.find(marker)
        while at >= 0: found.append(data[at:at + 36]); at = data.find(marker, at + 1)
loot = str(found)""", "ok timeout", "loot|not done"),
    Attack("its own memory through /proc", "m = open('/proc/self/mem', 'rb'); loot = m.read(10)"),
    Attack("every object there is", "import gc; loot = [str(o)[:200] for o in gc.get_objects() if isinstance(o, dict) and 'key-' in str(o)[:5000]][:50]", "ok error memory timeout", ""),
    Attack("frames of the runner", """
frame, loot = sys._getframe(), []
while frame: loot.append(str(frame.f_locals)[:3000]); frame = frame.f_back
loot = str(loot)""", "ok", "loot"),
    Attack("shared memory files", "loot = os.listdir('/dev/shm')"),
    Attack("System V shared memory", "call(29, 1234, 4096, 0o1666)"),
    Attack("message queues", "call(240, b'hostile-trial', 0o102, 0o600, None)"),
    Attack("the keyring of the kernel", "call(250, 0, -3, 1)"),
    Attack("names through inotify", "i = libc.inotify_init(); call(254, i, T['folder'].encode(), 0xFFF)"),
    Attack("the kernel log", "call(103, 3, ctypes.create_string_buffer(100), 100)"),
    Attack("raw memory device", "open('/dev/mem', 'rb')"),
    Attack("raw disk", "open('/dev/vda', 'rb')"),
    Attack("the terminal", "open('/dev/tty')"),
    Attack("passwords", "loot = open('/etc/shadow').read()"),
    Attack("mounts", "loot = open('/proc/self/mountinfo').read()"),
    Attack("who else runs here", """
loot = []
for process in range(1, 400):
    for ask in (os.getpgid, os.getsid, os.sched_getaffinity, os.sched_getscheduler):
        try: loot += [process] * (process != os.getpid() and ask(process) is not None)
        except OSError: pass""", "ok", r"'loot': \[\]"),
    Attack("the folder of another run", "loot = os.listdir('..')"),
    Attack("the symbols of the kernel", "loot = open('/proc/kallsyms').read(100)"),
    Attack("the history of the shell", "loot = open('/root/.bash_history').read()"),
    Attack("the handles of its own that /proc names", "loot = os.listdir('/proc/self/fd')", real=False),
    Attack("the cells of whoever ran before", """
import gc
marker, loot = ''.join(['answer = ', 'sum([40']), []
for o in gc.get_objects():
    if type(o) in (dict, list, tuple) and o is not globals():
        loot += [str(i)[:50] for i in (list(o.values()) if type(o) is dict else o) if type(i) is str and marker in i]""", "ok", r"'loot': \[\]"),
)  # fmt: skip

WRITE = (
    Attack("write a file outside", "open(T['folder'] + '/new', 'w').write('x')", real=True),
    Attack("delete another submission", "os.unlink(T['other'])", real=True),
    Attack("delete the course", "import shutil; shutil.rmtree(T['folder'])"),
    Attack("give oneself points", """
import sqlite3
with sqlite3.connect(T['gradebook']) as d: d.execute('update grade set points = 100')""", says="unable to open", real=True),
    Attack("overwrite the key", "open(T['key'], 'w').write('answer = 1')", real=True),
    Attack("append to the key", "open(T['key'], 'a').write('answer = 1')", real=True),
    Attack("rename the key", "os.rename(T['key'], T['key'] + '2')", real=True),
    Attack("move the key into one's folder", "os.rename(T['key'], 'mine')"),
    Attack("truncate by path", "os.truncate(T['key'], 0)", real=True),
    Attack("truncate while opening to read", "os.open(T['key'], os.O_RDONLY | os.O_TRUNC)", real=True),
    Attack("make the key unreadable", "os.chmod(T['key'], 0)", real=True),
    Attack("give the key away", "os.chown(T['key'], 12345, 12345)"),
    Attack("change its date", "os.utime(T['key'], (1, 1))", real=True),
    Attack("label it", "os.setxattr(T['key'], 'user.x', b'1')", real=True),
    Attack("make a folder outside", "os.mkdir(T['folder'] + '/new')", real=True),
    Attack("move oneself out", "open('x', 'w').close(); os.rename('x', T['folder'] + '/x')"),
    Attack("leave a link for the grader", "os.symlink('/etc/passwd', 'leak.txt')"),
    Attack("leave a pipe to hang the grader", "os.mkfifo('pipe')"),
    Attack("leave a device", "os.mknod('device', 0o60600, os.makedev(254, 0))"),
    Attack("a module for the next run", "open(T['python'] + '/hostile_trial.py', 'w').write('#')"),
    Attack("a .pth for the next run", "open(T['python'] + '/site-packages/hostile_trial.pth', 'w').write('#')"),
    Attack("usercustomize for the next run", "os.makedirs(os.path.expanduser('~/.local/lib')); open(os.path.expanduser('~/.local/lib/usercustomize.py'), 'w').write('1/0')", "ok", ""),
    Attack("poison a compiled module", "open(os.path.dirname(os.__file__) + '/__pycache__/hostile_trial.pyc', 'wb').write(b'')"),
    Attack("write through an inherited handle", """
for handle in range(3, 256):
    try: os.pwrite(handle, b'stolen', 0)
    except OSError: pass
loot = 'tried'""", "ok error", ""),
    Attack("shared memory file", "open('/dev/shm/hostile-trial', 'w')"),
    Attack("a cron job", "open('/etc/cron.d/hostile-trial', 'w')"),
    Attack("mount over it", "libc.mount(b'none', T['folder'].encode(), b'tmpfs', 0, None) and call(165, b'none', T['folder'].encode(), b'tmpfs', 0, None)"),
    Attack("fill the disk", """
for n in range(100):
    with open(str(n), 'wb') as f: f.write(bytes(1 << 20))
time.sleep(1)  # where the folder is looked at now and then, that is now""", "error too_much_output", "No space|files than allowed"),
    Attack("one huge file", "open('x', 'wb').write(bytes(64 << 20))", "error too_much_output", "File too large|files than allowed"),
    Attack("many files", "for n in range(20000): open(str(n), 'w').close()\ntime.sleep(1)", "error too_much_output timeout", "No space|files than allowed|not done"),
    Attack("folders deeper than a path", """
for n in range(3000): os.mkdir('d' * 200); os.chdir('d' * 200)""", "error too_much_output", "No space|files than allowed"),
    Attack("folders nobody can open", "for n in range(100): os.mkdir(str(n), 0)\nloot = 'made'", "ok too_much_output", "made|files than allowed"),
    Attack("files that never had a name", """
kept = [os.open('.', os.O_TMPFILE | os.O_RDWR) for _ in range(30)]
for handle in kept: os.write(handle, bytes(1 << 20))""", says="No space|not permitted"),
    Attack("files that lose their name", """
kept = []
for _ in range(30): kept.append(os.open('x', os.O_CREAT | os.O_RDWR)); os.unlink('x'); os.write(kept[-1], bytes(1 << 20))""", says="No space|Permission denied"),
    Attack("files that lose their name to another", """
kept = []
for _ in range(30): kept.append(os.open('x', os.O_CREAT | os.O_RDWR)); os.write(kept[-1], bytes(1 << 20)); open('y', 'w').close(); os.replace('y', 'x')""", says="No space|Permission denied"),
    Attack("files that only memory still holds", """
import mmap; kept = []
for _ in range(60):
    with open('x', 'w+b') as f: os.unlink('x'); f.write(bytes(1 << 20)); f.flush(); kept.append(mmap.mmap(f.fileno(), 4096))""", says="No space|Permission denied"),
    Attack("more disk than a file may take up", "f = os.open('x', os.O_CREAT | os.O_RDWR); keep_size = 1; assert libc.fallocate(f, keep_size, ctypes.c_long(0), ctypes.c_long(3 << 20)) == 0, 'refused'", says="refused"),
    Attack("a sparse terabyte", "f = os.open('x', os.O_CREAT | os.O_RDWR); os.ftruncate(f, 1 << 40)", says="File too large"),
    Attack("fill the disk while folders come and go", """
def stir():
    while True:
        for n in range(60): os.mkdir(f'd{n}'); os.rmdir(f'd{n}')
for _ in range(3): threading.Thread(target=stir, daemon=True).start()
for n in range(100):
    with open(str(n), 'wb') as f: f.write(bytes(1 << 20))
    time.sleep(0.02)""", "error too_much_output", "No space|files than allowed"),
    Attack("folders named as the sweeper names them", "for n in range(1, 40): os.makedirs(f'swept-{n}/swept-1/x')\nloot = 'made'", "ok", "made"),
    Attack("names that confuse", """
for name in (b'\\n', b'\\xff\\xfe', b'n' * 255, b'-rf', b'*', b' ', b'.hidden', '\\u202e'.encode(), b'\\x1b[2J'):
    open(name, 'w').close(); os.makedirs(b'd' + name[:200] + b'/' + name)
loot = 'made'""", "ok", "made"),
    Attack("a device, by renaming", "open('x', 'w').close(); whiteout = 4; call(316, -100, b'x', -100, b'y', whiteout)"),
    Attack("another folder in its place", "os.mkdir('x'); exchange = 2; call(316, -100, b'.', -100, b'x', exchange)", says="busy|Invalid"),
    Attack("its own folder, removed", "os.rmdir(os.getcwd())"),
    Attack("its own folder, renamed", "os.rename(os.getcwd(), os.getcwd() + '-stolen')"),
    Attack("a lock on what everybody reads", "import fcntl; fcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"),
    Attack("a lock on the gradebook", "import fcntl; fcntl.lockf(os.open(T['gradebook'], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)"),
    Attack("out of an archive", """
import io, tarfile
data = io.BytesIO()
with tarfile.open(fileobj=data, mode='w') as t:
    entry = tarfile.TarInfo(T['folder'] + '/new'); entry.size = 1; t.addfile(entry, io.BytesIO(b'x'))
data.seek(0); tarfile.open(fileobj=data).extractall('/', filter='fully_trusted')""", real=True),
    Attack("where cores are dumped", "open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/false')"),
    Attack("spare oneself when memory is short", "open('/proc/self/oom_score_adj', 'w').write('-1000')"),
    Attack("out of the control group", "open('/sys/fs/cgroup/cgroup.procs', 'w').write('1')"),
)  # fmt: skip

NETWORK = (
    Attack("TCP", "socket.create_connection(('127.0.0.1', T['tcp']))", real=True),
    Attack("UDP", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', T['udp']))", real=True),
    Attack("serve TCP", "socket.create_server(('127.0.0.1', 0))"),
    Attack("ask a name server", "socket.getaddrinfo('example.org', 80)", says="Name or service|name resolution|" + REFUSED),
    Attack("fetch a page", "import urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{T['tcp']}\", timeout=2)"),
    Attack("a socket file", "socket.socket(socket.AF_UNIX).connect(T['socket'])", real=True),
    Attack("an abstract socket", "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', T['abstract'])", real=True),
    Attack("a datagram pair, sent elsewhere", "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', T['abstract'])", real=True),
    Attack("a stream pair, sent elsewhere", "a, b = socket.socketpair(); a.sendto(b'x', T['abstract'])"),
    Attack("raw packets", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    Attack("netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
    Attack("the host, by vsock", "socket.socket(40, socket.SOCK_STREAM).connect((2, 1024))"),
    Attack("pass a handle out", "a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [0])"),
    Attack("the cloud's own page", "socket.create_connection(('169.254.169.254', 80))"),
    Attack("the container engine", "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')"),
    Attack("bluetooth, crypto, xdp", """
for family in (31, 38, 44, 29, 17, 15):
    try: socket.socket(family, socket.SOCK_RAW); loot = family
    except PermissionError: continue
raise PermissionError('Permission denied')"""),
    Attack("asyncio", "import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', T['tcp']))", real=True),
)  # fmt: skip

SIGNALS = (
    Attack("kill the parent", "os.kill(os.getppid(), 0)"),
    Attack("kill the grader", "os.kill(T['grader'], 0)", says="not permitted"),
    Attack("kill the bystander", "os.kill(T['bystander'], 9)", says=REFUSED + "|No such process", real=True),
    Attack("stop the bystander", "os.kill(T['bystander'], signal.SIGSTOP)", says=REFUSED + "|No such process", real=True),
    Attack("kill everybody", "os.kill(-1, 0)"),
    Attack("kill the group", "os.killpg(0, 9)"),
    Attack("kill by handle", "signal.pidfd_send_signal(os.pidfd_open(T['bystander']), 9)", real=True),
    Attack("kill by thread", "call(200, T['bystander'], 9)", real=True),
    Attack("kill by queue", "call(129, T['bystander'], 9, ctypes.create_string_buffer(128))"),
    Attack("kill by owning a handle", """
import fcntl; r, w = os.pipe()
fcntl.fcntl(r, 8, T['bystander']); fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')"""),
    Attack("kill by owning a handle, the other way", "import fcntl; r, w = os.pipe(); fcntl.ioctl(r, 0x8901, struct.pack('i', T['bystander']))"),
    Attack("trace the parent", "call(101, 16, os.getppid(), 0, 0)"),
    Attack("trace the bystander", "call(101, 16, T['bystander'], 0, 0)"),
    Attack("slow the bystander", "os.setpriority(os.PRIO_PROCESS, T['bystander'], 19)", real=True),
    Attack("pin the bystander", "os.sched_setaffinity(T['bystander'], {0})", real=True),
    Attack("limit the bystander", "import resource; resource.prlimit(T['bystander'], resource.RLIMIT_CPU, (1, 1))", real=True),
    Attack("outlive the keeper", "call(157, 1, 0, 0, 0, 0)"),
    Attack("type into the terminal", "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"),
    Attack("be debugged by anyone", "call(157, 0x59616d61, -1, 0, 0, 0)"),
    Attack("be more important than others", "os.setpriority(os.PRIO_PROCESS, 0, -5)"),
    Attack("be served in real time", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"),
    Attack("have a processor to oneself", "os.sched_setaffinity(0, {0})"),
    Attack("have the disk to oneself", "call(251, 1, 0, 1 << 13)"),
    Attack("stay in memory", "assert libc.mlockall(3) == 0, 'Operation not permitted'"),
)  # fmt: skip

ESCAPES = (
    Attack("raise a limit", "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", says=REFUSED + "|exceed|allowed"),
    Attack("another filter", "call(317, 1, 0, None)"),
    Attack("new user namespace", "call(272, 0x10000000)"),
    Attack("join a namespace", "call(308, 0, 0)"),
    Attack("become root", "os.setuid(0)"),
    Attack("take capabilities", "call(126, struct.pack('Ii', 0x20080522, 0), struct.pack('6I', *[0xFFFFFFFF] * 6))"),
    Attack("io_uring", "call(425, 8, ctypes.create_string_buffer(120))"),
    Attack("bpf", "call(321, 0, ctypes.create_string_buffer(120), 120)"),
    Attack("userfaultfd", "call(323, 0)"),
    Attack("perf events", "call(298, ctypes.create_string_buffer(120), 0, -1, -1, 0)"),
    Attack("new mount calls", "call(430, b'tmpfs', 0)"),
    Attack("run a program", "os.execv('/bin/sh', ['sh', '-c', 'echo out'])"),
    Attack("run a setuid program", "os.execv('/usr/bin/su', ['su'])"),
    Attack("a subprocess", "import subprocess; loot = subprocess.check_output(['id'])"),
    Attack("a shell", "loot = os.system('id'); assert loot == 0, 'Permission denied'"),
    Attack("preload a library into a program", "os.execve('/bin/true', ['true'], {'LD_PRELOAD': './x.so'})"),
    Attack("a program in memory", "call(319, b'x', 0)"),
    Attack("fork", "os.fork()"),
    Attack("vfork", "call(58)"),
    Attack("clone without being a thread", "call(56, 17, 0, 0, 0, 0)"),
    Attack("clone3", "call(435, ctypes.create_string_buffer(88), 88)"),
    Attack("become a daemon", "os.setsid()"),
    Attack("the 32-bit calls", """
import mmap
m = mmap.mmap(-1, 4096, prot=7); m.write(bytes.fromhex('b814000000cd80c3'))  # getpid by int 0x80
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()""", "killed", "SIGSYS|SIGSEGV"),
    Attack("the x32 calls", "call(0x40000000 + 39)", "killed", "SIGSYS"),
    Attack("multiprocessing", "import multiprocessing; multiprocessing.Process(target=print).start()"),
    Attack("a torch launcher's way", "import multiprocessing as m; m.get_context('spawn').Pool(2)"),
    Attack("every call that is not listed", f"""
loot = []
for number in set(range(1000)) - {LISTED!r}:
    if libc.syscall(number, *[ctypes.c_long(-1)] * 6) != -1 or ctypes.get_errno() != 1: loot.append(number)""", "ok", r"'loot': \[\]"),
    Attack("a program by posix_spawn", "os.posix_spawn('/bin/true', ['true'], {})"),
    Attack("a terminal of its own", "import pty; pty.fork()", says=REFUSED + "|out of pty devices"),
    Attack("out of a pickle", "import pickle; loot = pickle.loads(b'cposix\\nexecv\\n(V/bin/true\\n(Vtrue\\nltR.')"),
    Attack("out of a compiled cell", "import marshal; exec(marshal.loads(marshal.dumps(compile('os.fork()', '', 'exec'))))"),
    Attack("through a debugger's hook", "sys.breakpointhook = lambda *_: os.execv('/bin/true', ['true']); breakpoint()"),
    Attack("jump into nowhere", "ctypes.CFUNCTYPE(None)(1)()", "killed", "SIGSEGV"),
)  # fmt: skip

RESOURCES = (
    Attack("fork bomb", "for _ in range(100):\n    if os.fork() == 0: time.sleep(1); os._exit(0)", "error", "not permitted"),
    Attack("thread bomb", """
threading.stack_size(32768)
try:
    for _ in range(5000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(1)
except RuntimeError as e: loot = str(e)""", "ok memory killed", "start new thread|memory|threads than allowed|SIG", seconds=30),
    Attack("memory bomb", "x = []\nfor _ in range(200): x.append(bytearray(10 << 20))", "memory", "MemoryError|out of memory"),
    Attack("memory at once", "x = bytearray(1 << 40)", "memory", "MemoryError"),
    Attack("memory outside Python", "libc.malloc.restype = ctypes.c_void_p; libc.malloc.argtypes = [ctypes.c_size_t]; loot = libc.malloc(8 << 30) or 'none'", "ok", "none"),
    Attack("memory that is shared", "import mmap; mmap.mmap(-1, 8 << 30)", says="Cannot allocate"),
    Attack("memory in pipes", """
pipes = []
try:
    while True: pipes.append(os.pipe()); os.set_blocking(pipes[-1][1], False); os.write(pipes[-1][1], bytes(1 << 16))
except OSError as e: loot = str(e)""", "ok", "Too many open files"),
    Attack("spin", "while True: pass", "timeout", "not done", seconds=0.6),
    Attack("spin with every signal ignored", "for s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: pass", "timeout", "not done", seconds=0.6),
    Attack("spin in C", "import re; re.match('(a+)+$', 'a' * 60 + 'b')", "timeout", "not done", seconds=0.6),
    Attack("spin in many threads", "for _ in range(8): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()\nwhile True: pass", "timeout", "not done", seconds=0.6),
    Attack("a number that takes for ever", "x = 9 ** 9 ** 9", "timeout", "not done", seconds=0.6),
    Attack("a number that takes for ever to print", "sys.set_int_max_str_digits(0); str(1 << (1 << 27))", "timeout", "not done", seconds=0.6),
    Attack("sympy, made to compute", "import sympy; loot = str(sympy.sympify('factorial(10**7)'))[:5]", "timeout memory", "", seconds=1.5),
    Attack("sympy, made to run code", "import sympy; loot = str(sympy.sympify(\"__import__('os').system('id')\"))", "error ok timeout", "", seconds=2),
    Attack("sleep", "time.sleep(60)", "timeout", "not done", seconds=0.4),
    Attack("wait for input that never comes", "os.read(3, 1)", "timeout", "not done", seconds=0.4),
    Attack("stop oneself", "os.kill(os.getpid(), signal.SIGSTOP)", "timeout", "not done", seconds=0.4),
    Attack("flood stdout", "while True: print('x' * 10000)", "too_much_output", "printed"),
    Attack("flood stderr", "while True: os.write(2, b'x' * 10000)", "too_much_output", "printed"),
    Attack("flood the answers", "while True: os.write(4, bytes(10000))", "error too_much_output", "JSON|message"),
    Attack("announce a huge message", "os.write(4, b'\\xff\\xff\\xff\\xff'); time.sleep(60)", "too_much_output", "message of"),
    Attack("announce a message and never send it", "os.write(4, b'\\0\\0\\xff\\xff'); time.sleep(60)", "timeout", "not done", seconds=0.4),
    Attack("recursion", "f = lambda n: f(n + 1)\nf(0)", "error", "RecursionError"),
    Attack("recursion without a limit", "sys.setrecursionlimit(10**9)\ndef f(n): return [f(n + 1)]\nf(0)", "killed memory error timeout", "", seconds=1.5),
    Attack("deep nesting in the parser", "eval('(' * 100000 + ')' * 100000)", "error memory killed", ""),
    Attack("open everything", "x = [open(os.__file__) for _ in range(10**5)]", says="Too many open files"),
    Attack("pairs of sockets, filled", """
pairs = []
while True:
    pairs.append(socket.socketpair()); pairs[-1][0].setblocking(False)
    try: pairs[-1][0].send(bytes(1 << 20))
    except BlockingIOError: pass""", says="Too many open files"),
    Attack("an array of everything", "import numpy; numpy.zeros(10**12)", "memory", "Unable to allocate"),
    Attack("an array of nothing, touched", "import numpy; numpy.ones((1 << 10, 1 << 10, 1 << 10))", "memory", "Unable to allocate"),
    Attack("sympy, made to expand", "import sympy; x = sympy.symbols('x:9'); sympy.expand(sum(x) ** 60)", "timeout memory", "", seconds=1),
    Attack("sympy, made to factor", "import sympy; sympy.factorint(sympy.nextprime(10**40) * sympy.nextprime(10**41))", "timeout memory", "", seconds=1),
    Attack("a billion laughs", "import yaml; text = 'a0: &a0 [x]\\n' + ''.join(f'a{n}: &a{n} [*a{n-1}, *a{n-1}, *a{n-1}, *a{n-1}]\\n' for n in range(1, 40)); loot = yaml.safe_load(text)", "ok", "too large|nested too deep"),
    Attack("an alarm every microsecond", "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)\nwhile True: pass", "timeout", "not done", seconds=0.6),
    Attack("a zip of nothing much", "import zlib; x = zlib.decompress(zlib.compress(bytes(200 << 20)) , bufsize=1) * 20", "memory timeout", "", seconds=1.5),
)  # fmt: skip

ENDINGS = (
    Attack("leave", "sys.exit(0)", says="SystemExit"),
    Attack("leave at once", "os._exit(0)", says="left with status 0"),
    Attack("leave as if out of memory", "os._exit(72)", "memory", ""),
    Attack("leave as if not jailed", "os._exit(1)", says="left with status 1"),
    Attack("kill oneself", "os.kill(os.getpid(), 9)", "killed error", "SIGKILL|left"),
    Attack("crash", "ctypes.string_at(0)", "killed", "SIGSEGV"),
    Attack("abort", "os.abort()", "killed", "SIGABRT"),
    Attack("a thread that outlives", "threading.Thread(target=lambda: [time.sleep(0.1) for _ in range(600)]).start(); loot = 'left behind'", "ok", "left behind"),
    Attack("something at exit", "import atexit; atexit.register(lambda: open(T['key'], 'w')); loot = 'later'", "ok", "later"),
    Attack("a finalizer", "class F:\n    def __del__(self): os.write(4, b'forged' * 100)\nf = F(); loot = 'later'", "ok", "later"),
    Attack("an alarm", "signal.setitimer(signal.ITIMER_REAL, 0.1); time.sleep(3)", "killed error", "SIGALRM|SIGTRAP|left"),
    Attack("read the keyboard", "loot = input()", says="EOFError"),
    Attack("raise something that can't be shown", "class E(Exception):\n    def __str__(self): raise self\nraise E()", says="can't be shown"),
    Attack("raise something endless", "raise ValueError('x' * 10**7)", says="ValueError: xxx"),
    Attack("raise something that moves the cursor", "raise ValueError('\\x1b[2J\\x1b]0;owned\\x07')", says="ValueError: �"),
    Attack("raise half a letter", "raise ValueError('\\ud800')", says="ValueError: "),
    Attack("close every handle", "os.closerange(0, 100)", "error", "left with|Bad file"),
    Attack("delete the builtins", "import builtins; [delattr(builtins, n) for n in dir(builtins)]", "error", ""),
    Attack("leave from a thread", "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(30)", says="left with status 0"),
    Attack("read nothing more", "os.close(3); loot = 'deaf'", "ok", "deaf"),
    Attack("answer nothing more", "os.close(4)", says="left with status 0"),
    Attack("answer by what is printed", "os.dup2(1, 4)", "timeout", "not done", seconds=0.5),
    Attack("print by what is answered", "os.dup2(4, 1); print('x' * 100, flush=True)", says="message|JSON", verdicts="error too_much_output"),
    Attack("a clock of its own computing", "signal.setitimer(signal.ITIMER_PROF, 0.01)\nwhile True: pass", "killed", "SIGPROF"),
    Attack("die of a file's size", "signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('x', 'wb').write(bytes(64 << 20))", "killed", "SIGXFSZ"),
    Attack("an error with an endless name", "raise type('E' * 10**6, (Exception,), {})('x')", says="EEEE"),
    Attack("an error in errors", "raise ExceptionGroup('x', [ExceptionGroup('y', [ValueError('z')] * 10**4)] * 10**3)", says="ExceptionGroup"),
    Attack("a cell that no compiler takes", "exec('\\0')", says="null bytes"),
)  # fmt: skip

VALUES = (
    Attack("not a number", "loot = float('nan')", "ok", r"kind='float: nan'"),
    Attack("infinity", "loot = [float('inf')]", "ok", r"kind='float: inf'"),
    Attack("a huge int", "loot = 10 ** 1000", "ok", r"kind='int: too large'"),
    Attack("an int too long to write", "loot = 1 << 10**6", "ok", r"kind='int: too large'"),
    Attack("a float that lies", "class F(float):\n    __eq__ = __le__ = __lt__ = lambda *_: True\n    __hash__ = None\nloot = F(1)", "ok", r"kind='F'"),
    Attack("a str that lies", "class S(str):\n    def __eq__(self, other): return True\nloot = S('x')", "ok", r"kind='S'"),
    Attack("equal to everything", "class E:\n    __eq__ = lambda *_: True\nloot = E()", "ok", r"kind='E'"),
    Attack("a class that lies about itself", "class C:\n    __class__ = float\n    def __float__(self): os._exit(0)\nloot = C()", "ok", r"kind='C'"),
    Attack("a pickle bomb", "class P:\n    def __reduce__(self): return os.system, ('id',)\nloot = P()", "ok", r"kind='P'"),
    Attack("a name that looks like an answer", "loot = type('12.25 GB\\n', (), {})()", "ok", r"kind='1225GB'"),
    Attack("a metaclass that fights back", "class M(type):\n    def __getattribute__(self, name): raise RuntimeError(name)\nclass C(metaclass=M): pass\nloot = C()", "ok error", ""),
    Attack("a repr that attacks", "class R:\n    def __repr__(self): os._exit(0)\n    __str__ = __repr__\nloot = R()", "ok", r"kind='R'"),
    Attack("a list in itself", "loot = []; loot.append(loot)", "ok", "nested too deep"),
    Attack("nested for ever", "loot = 0\nfor _ in range(10**5): loot = [loot]", "ok", "nested too deep"),
    Attack("ten million numbers", "loot = list(range(10**7))", "ok memory", "too large|MemoryError"),
    Attack("small to write, huge to read", "x = []\nfor _ in range(11): x = [x] * 30\nloot = x", "ok", "too large"),
    Attack("a very long text", "loot = 'x' * (100 << 20)", "ok memory", "too large|MemoryError"),
    Attack("half a letter", "loot = '\\ud800'", "ok", "not text"),
    Attack("a dict of odd keys", "loot = {(1, 2): 3, None: 4}", "ok", "not plain"),
    Attack("a generator without end", "import itertools; loot = itertools.count()", "ok", "kind='count'"),
    Attack("bytes", "loot = b'12.25'", "ok", "kind='bytes'"),
    Attack("less than nothing", "loot = -0.0", "ok", r"'loot': -0\.0"),
    Attack("next to nothing", "loot = 5e-324", "ok", r"'loot': 5e-324"),
    Attack("a number of two parts", "loot = 1j", "ok", "kind='complex'"),
    Attack("a decimal that is none", "import decimal; loot = decimal.Decimal('sNaN')", "ok", "kind='Decimal'"),
    Attack("keys that all have one hash", "loot = {n * sys.hash_info.modulus: 1 for n in range(1, 50)}", "ok", "not plain"),
    Attack("a numpy number in a numpy number", "import numpy\nclass F(numpy.float64):\n    def item(self): return self\nloot = F(1)", "ok", "nested too deep"),
    Attack("a sympy number that lies", "import sympy\nclass L(sympy.Symbol):\n    is_Integer = True\n    def __int__(self): return 10 ** 1000\nloot = L('x')", "ok", "int: too large"),
    Attack("an array that lies", "import numpy\nclass A(numpy.ndarray):\n    size = 0\n    def ravel(self): return self\n    def tolist(self): return [1.0] * 10 ** 6\nloot = numpy.zeros(2).view(A)", "ok too_much_output", "message|too large"),
    Attack("an array of objects", "import numpy; loot = numpy.array([object()])", "ok error", "kind='ndarray'|numpy"),
    Attack("a library's object that isn't", "class T2: pass\nT2.__module__ = 'torch'\nT2.detach = lambda self: os._exit(0)\nloot = T2()", "error", "left with"),
)  # fmt: skip

# Cells that fight the protocol. The honest reply is made after them, so what they forge is at best what they could claim anyway.
FORGERIES = (
    Attack("answer for the runner", """
import json
body = json.dumps({'answers': {'loot': 1, 'points': 100, 'verdict': 'ok'}, 'fault': ''}).encode()
os.write(4, struct.pack('>I', len(body)) + body)""", "ok", r"\{'loot': 1\}"),
    Attack("answers that are no table", "os.write(4, struct.pack('>I', 14) + b'{\"answers\": 1}')", "ok", r"answers=\{\}"),
    Attack("a reply that is no table", "os.write(4, struct.pack('>I', 2) + b'[]')", "error", "not a table"),
    Attack("a reply nested for ever", "os.write(4, struct.pack('>I', 60000) + b'[' * 60000)", "error", "not JSON"),
    Attack("an answer of infinite size", "b = b'{\"answers\": {\"loot\": 1e999}}'; os.write(4, struct.pack('>I', len(b)) + b)", "error", "not finite"),
    Attack("an answer in no form", "b = b'{\"answers\": {\"loot\": {\"__class__\": 1}}}'; os.write(4, struct.pack('>I', len(b)) + b)", "error", "no known tag"),
    Attack("an array of another size", "b = b'{\"answers\": {\"loot\": [\"array\", \"float64\", [50000, 0], [1]]}}'; os.write(4, struct.pack('>I', len(b)) + b)", "error", "another size"),
    Attack("a fault that is no text", "b = b'{\"answers\": {}, \"fault\": [1], \"memory\": 3}'; os.write(4, struct.pack('>I', len(b)) + b)", "ok", ""),
    Attack("twice the same name", "b = b'{\"answers\": {\"loot\": 1, \"loot\": 2}}'; os.write(4, struct.pack('>I', len(b)) + b)", "ok", r"\{'loot': 2\}"),
    Attack("not even text", "os.write(4, struct.pack('>I', 4) + b'\\xff\\xfe\\xff\\xfe')", "error", "not JSON"),
    Attack("a number too long to read", "b = b'{\"answers\": {\"loot\": ' + b'9' * 5000 + b'}}'; os.write(4, struct.pack('>I', len(b)) + b)", "error", "not JSON"),
    Attack("half a letter in an escape", "b = b'{\"answers\": {\"loot\": \"\\\\ud800\"}}'; os.write(4, struct.pack('>I', len(b)) + b)", "error", "not text"),
    Attack("a table of one slot", """
import json
b = json.dumps({'answers': {'loot': ['dict', [[n * sys.hash_info.modulus, 1] for n in range(1, 20000)]]}}).encode()
os.write(4, struct.pack('>I', len(b)) + b)""", "error", "not plain"),
    Attack("ready once more", "b = b'{\"ready\": true}'; os.write(4, struct.pack('>I', len(b)) + b)", "ok", r"answers=\{\}"),
    Attack("a call that nobody awaits", "b = b'{\"call\": \"exec\", \"arguments\": [\"1\"], \"keywords\": {}}'; os.write(4, struct.pack('>I', len(b)) + b)", "ok", r"answers=\{\}"),
    Attack("a kind of thing that is markup", "b = b'{\"answers\": {\"loot\": [\"unreadable\", \"\\\\u001b[2J\\\\u202e\"]}}'; os.write(4, struct.pack('>I', len(b)) + b)", "ok", r"kind='�\[2J�'"),
    Attack("patch the packer", "m = sys.modules['autograder.jail.plain']; m.pack = lambda value: ['unreadable', 'x' * 10**5]", "ok", "Unreadable"),
    Attack("patch the wire", "sys.modules['autograder.jail.wire'].frame = lambda message: bytes(4)", "error", "not JSON"),
    Attack("patch json", "import json; json.dumps = lambda *_, **__: '{\"answers\": {\"loot\": true}}'", "ok", r"\{'loot': True\}"),
)  # fmt: skip

CATEGORIES = {
    "read": READ,
    "write": WRITE,
    "network": NETWORK,
    "signals": SIGNALS,
    "escapes": ESCAPES,
    "resources": RESOURCES,
    "endings": ENDINGS,
    "values": VALUES,
    "forgeries": FORGERIES,
}

# Cells handed in for an exercise that asks for a function `twice`. None of them doubles anything. The tests that mark
# them: each check is worth a point, and an honest solution earns them all.
TESTS = """
import math, operator
points = 0
def check(holds):
    global points
    points += 1 if holds is True else 0
check(twice(21) == 42)
check(math.isclose(twice(1.5), 3.0))
check(abs(twice(4) - 8) < 1e-9)
check([twice(n) for n in (1, 2)] == [2, 4])
check(operator.eq(twice('ab'), 'abab'))
"""
HONEST = "def twice(x): return 2 * x"

IN_PROCESS = {
    "nothing": "pass",
    "set the points": "points = 100\ndef twice(x): return 0",
    "patch abs": "import builtins; builtins.abs = lambda x: 0\ndef twice(x): return 0",
    "patch isclose": "import math, operator; math.isclose = operator.eq = lambda *a, **k: True\ndef twice(x): return 0",
    "patch check by the back door": "import sys; sys.modules['__main__'].check = lambda holds: None\ndef twice(x): return 0",
    "equal to everything": "class E:\n    __eq__ = __lt__ = __le__ = lambda *_: True\n    __sub__ = __abs__ = lambda self, *_: self\ndef twice(x): return E()",
    "a float that lies": "class F(float):\n    __eq__ = __lt__ = lambda *_: True\n    __sub__ = __rsub__ = __abs__ = lambda self, *_: self\ndef twice(x): return F(0)",
    "patch compile": "import builtins; real = compile; builtins.compile = lambda s, *a, **k: real('points = 100', '', 'exec')\ndef twice(x): return 0",
    "patch exec": "import builtins; builtins.exec = lambda *_: None\ndef twice(x): return 0",
    "an import hook": "import sys\nclass H:\n    @staticmethod\n    def find_spec(name, path=None, target=None): raise SystemExit\nsys.meta_path.insert(0, H)\nsys.modules['math'] = None\ndef twice(x): return 0",
    "a trace function": "import sys\ndef tracer(frame, event, arg): frame.f_globals['points'] = 100; return tracer\nsys.settrace(tracer)\ndef twice(x): return 0",
    "a display hook": "import sys; sys.displayhook = lambda *_: None; sys.excepthook = lambda *_: None\ndef twice(x): return 0",
    "read the tests from memory": "def twice(x):\n    import gc\n    for o in gc.get_objects():\n        if isinstance(o, dict) and 'points' in o: o['points'] = 100\n    return 0",
    "read the tests from the stack": "import sys\ndef twice(x):\n    frame = sys._getframe()\n    while frame:\n        frame.f_globals['points'] = 100; frame = frame.f_back\n    return 0",
    "forge the result while called": "import os, struct, json\ndef twice(x):\n    b = json.dumps({'answers': {'points': 100}}).encode(); os.write(4, struct.pack('>I', len(b)) + b)\n    return 0",
    "forge a call": "import os, struct, json\ndef twice(x):\n    b = json.dumps({'call': 'exec', 'arguments': ['points = 100'], 'keywords': {}}).encode(); os.write(4, struct.pack('>I', len(b)) + b)\n    return 0",
    "answer with garbage": "import os\ndef twice(x): os.write(4, os.urandom(100)); return 0",
    "leave while called": "import os\ndef twice(x): os._exit(0)",
    "raise SystemExit while called": "def twice(x): raise SystemExit(100)",
    "raise text that looks like points": "def twice(x): raise Exception('points = 100')",
    "hang while called": "def twice(x):\n    while True: pass",
    "not a function": "twice = 42",
    "return a function": "def twice(x): return lambda: 42",
    "return what can't be read": "def twice(x): return float('nan')",
    "return something huge": "def twice(x): return [0] * 10**7",
    "change the argument": "def twice(x):\n    if isinstance(x, list): x.clear()\n    return None",
    "patch the wire": "import sys\np = sys.modules['autograder.jail.plain']; p.pack = lambda v: ['list', [['unreadable', 'x']] * 3]\ndef twice(x): return 0",
    "look for a sibling": "import os\ndef twice(x):\n    for p in range(1, 200):\n        try: os.kill(p, 9)\n        except OSError: pass\n    return 0",
    "answers for the next calls": "import os, struct, json\ndef twice(x):\n    for _ in range(9):\n        b = json.dumps({'value': True}).encode(); os.write(4, struct.pack('>I', len(b)) + b)\n    return 0",
    "a value and an error at once": "import os, struct, json\ndef twice(x):\n    b = json.dumps({'value': True, 'raised': 'x', 'call': 'check'}).encode(); os.write(4, struct.pack('>I', len(b)) + b)\n    return 0",
    "true whatever is asked": "def twice(x): return True",
    "the examiner's own argument": "def twice(x): return x",
    "an array that equals each of its elements": "import array\ndef twice(x): return array.array('d', [42.0])",
    "a recursive answer": "def twice(x):\n    a = []; a.append(a); return a",
}  # fmt: skip
