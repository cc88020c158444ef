"""The process in which an agent that is code plays: it gets observations and gives actions.

It is started by `hpcgym.agent.sandbox`, which trusts nothing that it says. Before the code is
loaded it leaves networks and other processes behind (namespaces), all files but those of Python, of
libraries and of the agent's folder, which it can only read (Landlock), and sockets (seccomp). Each
episode is played by a fork of the process as it was once the agent was loaded.

Source: Linux, unshare(2), landlock(7), seccomp(2).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import pickle
import resource
import signal
import struct
import sys
import sysconfig
import time
from collections.abc import Iterator
from importlib.resources import files
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.agent.sandbox import NONE_HERE

NAMESPACES = 0x10000000 | 0x40000000 | 0x20000000 | 0x08000000
"""Of users, networks, process ids, and what processes share by System V's calls."""

CREATE_RULES, ADD_RULE, RESTRICT = 444, 445, 446
NO_NEW_PRIVILEGES, FILTER_CALLS, SIGNAL_AT_PARENTS_END = 38, 22, 1
"""Numbers of system calls, the same on every processor, and of what `prctl` sets."""

EXECUTE, WRITE, READ, LIST = 1, 2, 4, 8
N_RIGHTS = (13, 14, 15, 15, 16)
"""What may be done with files, as bits; how many there are in each version of Landlock."""

OPEN_RING = 425
SOCKETS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Numbers of the calls that begin talks with others, and of processors in filters of calls."""

LIMITS = {
    resource.RLIMIT_AS: 8 * 2**30,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_NOFILE: 256,
    resource.RLIMIT_NPROC: 64,
}

DEVICES = {"/dev/null": READ | WRITE, "/dev/zero": READ, "/dev/urandom": READ}

LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Serve one agent, through the pipe whose number is the first argument."""
    pipe = Connection(int(sys.argv[1]))
    given, installed, hidden = pickle.loads(pipe.recv_bytes())
    from hpcgym.agent.own import own_agent

    try:
        _leave_others()
        folder = Path(given.partition(".py:")[0]).parent
        _leave_files([folder, *map(Path, installed)], [*map(Path, hidden)])
        _leave_sockets()
        for limit, most in LIMITS.items():
            resource.setrlimit(limit, (most, most))
    except (OSError, AttributeError, KeyError) as error:
        _say(pipe, error=NONE_HERE.format(error))
        return
    try:
        agent: Any = own_agent(given)
        if hasattr(agent, "choices"):
            raise TypeError("a policy runs in the simulator; a sandbox takes agents with predict()")
        _say(pipe, name=agent.name, env_keywords=dict(agent.env_keywords))
    except BaseException as error:
        _say(pipe, error=f"{type(error).__name__}: {error}")
        return
    _serve(agent, pipe)


def _serve(agent: Any, pipe: Connection) -> None:
    """Play episodes, each in a fork, which ends at the question None."""
    while (episode := os.fork()) != 0:
        if os.waitpid(episode, 0)[1] != 0:
            return
    state, start = None, np.ones(1, dtype=np.bool_)
    while (observation := pickle.loads(pipe.recv_bytes())) is not None:
        try:
            action, state = agent.predict(observation, state, start, True)
            start = np.zeros(1, dtype=np.bool_)
            chosen = np.asarray(action)
            _say(pipe, action=chosen.tolist(), dtype=chosen.dtype.name)
        except BaseException as error:
            _say(pipe, error=f"{type(error).__name__}: {error}")
    os._exit(0)


def _say(pipe: Connection, **said: Any) -> None:
    pipe.send_bytes(json.dumps(said, default=str).encode())


def _leave_others() -> None:
    """Go on as the first process of namespaces of its own, which ends with this one's parent."""
    parent = os.getppid()
    _checked("unshare", _libc.unshare(NAMESPACES))
    if inner := os.fork():
        while os.waitpid(inner, os.WNOHANG) == (0, 0) and os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)
    _libc.prctl(SIGNAL_AT_PARENTS_END, signal.SIGKILL, 0, 0, 0)


def _leave_files(folders: list[Path], hidden: list[Path]) -> None:
    """Give up all files but those of some folders and those that programs need to run."""
    version = _checked("landlock", _libc.syscall(CREATE_RULES, None, 0, 1))
    every = (1 << N_RIGHTS[min(version, len(N_RIGHTS)) - 1]) - 1
    rules = _checked("landlock", _libc.syscall(CREATE_RULES, struct.pack("<Q", every), 8, 0))
    roots = [*folders, Path(str(files("hpcgym"))), *map(Path, LIBRARIES)]
    roots += [Path(sysconfig.get_path(key)) for key in ("stdlib", "platstdlib")]
    rights = {path: right for root in roots for path, right in _but(root.resolve(), hidden)}
    for path, right in (rights | {Path(path): right for path, right in DEVICES.items()}).items():
        if path.exists():
            file = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("<Qi", right | (LIST if path.is_dir() else 0), file)
            _checked(str(path), _libc.syscall(ADD_RULE, rules, 1, rule, 0))
            os.close(file)
    _checked("prctl", _libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked("landlock", _libc.syscall(RESTRICT, rules, 0))
    os.close(rules)


def _but(path: Path, hidden: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield what may be read of a folder or file; of folders around hidden ones only their list."""
    if not any(folder.is_relative_to(path) for folder in hidden):
        yield path, READ | EXECUTE
    elif path.is_dir() and path not in hidden:
        yield path, LIST
        for part in path.iterdir():
            yield from _but(part, hidden)


def _leave_sockets() -> None:
    """Refuse further sockets, as those of the system's services have names in folders."""
    processor, open_socket = SOCKETS[os.uname().machine]
    load, jump_if, jump_from, end = 0x20, 0x15, 0x35, 0x06
    refused, allowed, killed = 0x00050000 | errno.EACCES, 0x7FFF0000, 0x80000000
    steps = [
        *((load, 0, 0, 4), (jump_if, 0, 4, processor)),
        *((load, 0, 0, 0), (jump_from, 2, 0, 0x40000000)),
        *((jump_if, 2, 0, open_socket), (jump_if, 1, 2, OPEN_RING)),
        *((end, 0, 0, killed), (end, 0, 0, refused), (end, 0, 0, allowed)),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    given = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(program))
    _checked("seccomp", _libc.prctl(FILTER_CALLS, 2, given, 0, 0))


def _checked(call: str, result: int) -> int:
    """Return what a system call has returned, or raise what went wrong."""
    if result < 0:
        raise OSError(f"{call}: {os.strerror(ctypes.get_errno())}")
    return result
