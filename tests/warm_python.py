"""Programs run in forks of a process that has imported what most of them need.

Most of a short command's time goes to imports of libraries. `WarmPython` makes a folder of two
programs, `hpcgym` and `python`, that do what the installed ones do, with the same folder,
variables, streams, arguments and exit code. Only files run so: the real `python` does the rest.
"""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

HPCGYM = os.path.join(sysconfig.get_path("scripts"), "hpcgym")
CLIENT = """#!{python} -IS
import os, sys
arguments = [*{before}, *sys.argv[1:]]
if not arguments or not os.path.isfile(arguments[0]):
    os.execv({python!r}, [{python!r}, *arguments])
import json, socket
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b" "], [0, 1, 2])
    server.sendall(json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(9)))
"""


class WarmPython:
    """The process that forks, and the folder of the programs that ask it to.

    Args:
        folder: An empty one, whose path is short enough for that of a socket.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        address = str(folder / "socket")
        for name, before in (("hpcgym", [HPCGYM]), ("python", [])):
            text = CLIENT.format(python=sys.executable, before=before, address=address)
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        command = [sys.executable, __file__, address]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.communicate()


def main() -> None:
    """Import, and fork for each program that asks, until the process is ended."""
    import gymnasium  # noqa: F401
    import pandas  # noqa: F401
    import rich.table  # noqa: F401

    import hpcgym.cli
    import hpcgym.env
    import hpcgym.evaluation
    import hpcgym.schedule.schedule  # noqa: F401

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        print("ready", flush=True)
        while True:
            asker, _ = server.accept()
            if os.fork() == 0:
                break
            asker.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    program = os.fork()
    if program == 0:
        run(asker)
        return
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    asker.sendall(str(code).encode())
    os._exit(0)


def run(asker: socket.socket) -> None:
    """Run the program that is asked for as if Python had just begun."""
    with asker:
        _, streams, *_ = socket.recv_fds(asker, 1, 3)
        task = b"".join(iter(lambda: asker.recv(65_536), b""))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv, folder, variables = json.loads(task)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    time.tzset()
    sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    main = ModuleType("__main__")
    main.__file__ = os.path.abspath(sys.argv[0])
    sys.modules["__main__"] = main
    exec(compile(Path(sys.argv[0]).read_bytes(), sys.argv[0], "exec"), vars(main))


if __name__ == "__main__":
    main()
