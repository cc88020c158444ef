"""Agents that are code, in a process that has no network, no logs and no files of others."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent, indent
from types import SimpleNamespace

import numpy as np
import pytest

from hpcgym.agent import load_agent, sandbox
from hpcgym.agent.sandbox import PROGRAM, SandboxedAgent, load_sandboxed
from hpcgym.base.errors import CardError
from hpcgym.evaluation import evaluate

SHOWN = {"cluster": np.zeros(4, dtype=np.float32)}
ENDED = "its process has ended, or was ended"

AGENT = """
import ctypes, os, socket, sys, time
import numpy as np

calls = 0

class Mine:
    name = "MINE"
    env_keywords = {"action": "policy", "policies": ["SAF", "FCFS"]}

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        global calls
        calls += 1
        return np.int64(self.chosen(observation)), state

    def chosen(self, observation):
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file of an agent in a folder of its own."""
    folder = tmp_path / "agent"
    folder.mkdir()
    return folder / f"{tmp_path.name}.py"  # no two modules may share a name


def written(mine: Path, chosen: str) -> str:
    """Write an agent that chooses so; return what it is called by."""
    mine.write_text(AGENT + indent(dedent(chosen), " " * 8), encoding="utf-8")
    return f"{mine}:Mine"


@pytest.fixture(autouse=True, scope="module")
def has_a_sandbox(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Leave these tests out only where the agent is refused for want of a sandbox."""
    try:
        load_sandboxed(written(tmp_path_factory.mktemp("first") / "first.py", "return 0"))
    except CardError as error:
        if "this system has no sandbox" not in str(error):
            raise
        pytest.skip(str(error))


def attempt(code: str) -> str:
    """Return what chooses 1 where some code raises nothing, and is true."""
    return f"try:\n    return int(bool({code}))\nexcept Exception:\n    return 0"


@pytest.fixture
def targets(tmp_path: Path) -> Iterator[dict[str, object]]:
    """What attacks aim at: servers, a log, a file, this process."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "log.swf").write_text("1 0 0 10 1", encoding="utf-8")
    (tmp_path / "other.txt").write_text("secret", encoding="utf-8")
    with ExitStack() as stack:
        tcp, udp, path, abstract = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                *[(socket.AF_UNIX, socket.SOCK_STREAM)] * 2,
            )
        )
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        path.bind(f"{tmp_path}/s")
        abstract.bind(f"\0hpcgym-{os.getpid()}")
        for server in (tcp, path, abstract):
            server.listen()
        secret = np.arange(8)
        yield {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": f"{tmp_path}/s",
            "abstract": abstract.getsockname(),
            "logs": str(logs),
            "other": str(tmp_path / "other.txt"),
            "pid": os.getpid(),
            "address": secret.ctypes.data,
            "link": str(tmp_path / "link"),
            "new": str(tmp_path / "new"),
        }


ATTACKS = {
    "tcp": "socket.create_connection(('127.0.0.1', {tcp}), 5)",
    "udp": "socket.socket(2, 2).sendto(b'x', ('127.0.0.1', {udp}))",
    "unix": "socket.socket(1).connect({unix!r}) is None",
    "abstract": "socket.socket(1).connect({abstract!r}) is None",
    "read a log": "open({logs!r} + '/log.swf').read()",
    "list logs": "os.listdir({logs!r})",
    "link a log": "os.link({logs!r} + '/log.swf', {link!r}) is None",
    "read a file": "open({other!r}).read()",
    "read the list of users": "open('/etc/passwd').read()",
    "write a file": "open({new!r}, 'w').write('x')",
    "write beside itself": "open(os.path.dirname(__file__) + '/x', 'w').write('x')",
    "read variables": "os.environ['HPCGYM_TRACES']",
    "read variables of the parent": "open('/proc/{pid}/environ', 'rb').read()",
    "read memory by path": "os.pread(os.open('/proc/{pid}/mem', 0), 8, {address})",
    "read memory by call": "read({pid}, {address}) == 8",
    "signal": "os.kill({pid}, 0) is None",
    "other processes": "[one for one in os.listdir('/proc') if one == str({pid})]",
}

READ = """
def read(pid, address):
    there = (ctypes.c_void_p * 2)(address, 8)
    here = ctypes.create_string_buffer(8)
    mine = (ctypes.c_void_p * 2)(ctypes.addressof(here), 8)
    libc = ctypes.CDLL(None)
    return libc.process_vm_readv(pid, mine, 1, there, 1, 0)
"""


@pytest.mark.long
def test_every_attack_succeeds_outside_and_fails_in_the_sandbox(
    mine: Path, targets: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One agent tries all; a bit of its action says of each whether it has succeeded."""
    monkeypatch.setenv("HPCGYM_TRACES", str(targets["logs"]))
    tries = ["done = 0"]
    for bit, attack in enumerate(ATTACKS.values()):
        code = f"done |= bool({attack.format(**targets)}) << {bit}"
        tries.append(f"try:\n    {code}\nexcept Exception:\n    pass")
    given = written(mine, "\n".join([*tries, "return done"]))
    mine.write_text(mine.read_text("utf-8") + READ, encoding="utf-8")
    inside, outside = (load(given).predict(SHOWN)[0] for load in (load_sandboxed, load_agent))
    assert [attack for bit, attack in enumerate(ATTACKS) if inside >> bit & 1] == []
    assert [attack for bit, attack in enumerate(ATTACKS) if outside >> bit & 1] == [*ATTACKS]


@pytest.mark.long
def test_a_log_in_the_agents_folder_cannot_be_read(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = mine.parent / "logs"
    logs.mkdir()
    (logs / "log.swf").write_text("1 0 0 10 1", encoding="utf-8")
    (mine.parent / "weights.txt").write_text("7", encoding="utf-8")
    given = written(mine, attempt("open(os.path.dirname(__file__) + '/logs/log.swf').read()"))
    monkeypatch.setenv("HPCGYM_TRACES", str(logs))
    assert load_sandboxed(given).predict(SHOWN)[0] == 0
    monkeypatch.setenv("HPCGYM_TRACES", "")
    assert load_sandboxed(given).predict(SHOWN)[0] == 1
    given = written(mine, attempt("open(os.path.dirname(__file__) + '/weights.txt').read() == '7'"))
    assert load_sandboxed(given).predict(SHOWN)[0] == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("while True: time.sleep(1)", ENDED),
        ("[os.write(file, b'garbage' * 9) for file in range(3, 256) if is_open(file)]", ENDED),
        (
            "[os.write(file, b'\\0\\0\\0\\1x') for file in range(3, 256) if is_open(file)]",
            "no answer",
        ),
        ("sys.exit('a\\nb')", "SystemExit: a b"),
        ("np.ones(2**34)", "Unable to allocate"),
    ],
)
def test_what_an_agent_does_wrong_is_said_in_a_line(
    chosen: str, said: str, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = SandboxedAgent(written(mine, chosen), digest="")
    mine.write_text(
        mine.read_text("utf-8")
        + "\ndef is_open(file):\n    return os.path.exists(f'/dev/fd/{file}') or can(file)\n"
        "\ndef can(file):\n    try:\n        return os.fstat(file) is not None\n"
        "    except OSError:\n        return False\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sandbox, "EPISODE_S", 1.5)
    with pytest.raises(CardError, match="in a sandbox: ") as error:
        agent.predict(SHOWN)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.long
def test_what_is_no_action_is_refused(mine: Path) -> None:
    actions = "np.zeros(400_000), 'SAF', {}, float('nan'), 2**70"
    given = written(mine, "return int(observation['cluster'][0])")
    text = mine.read_text("utf-8").replace("np.int64(self", f"[{actions}][self").replace("))", ")]")
    mine.write_text(text, encoding="utf-8")
    agent = SandboxedAgent(given, digest="")
    for which in range(5):
        with pytest.raises(CardError, match=r"no action|no answer|bytes for one"):
            agent.predict({"cluster": np.full(4, which, dtype=np.float32)})


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"reward": "bsld"}, "unknown keyword in a sandbox 'reward'"),
        ({"policies": ["own.py:Policy"]}, "policies must be names or numbers, got 'own.py:Policy'"),
        ({"backfill": "own:Mode"}, "backfill must be names"),
        ({"n_slots": {"a": 1}}, "n_slots must be names"),
    ],
)
def test_keywords_that_would_run_code_here_are_refused(
    keywords: dict[str, object], said: str, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the process says; what it says is what the agent states, in the tests below."""
    told = SimpleNamespace(said={"name": "MINE", "env_keywords": keywords})
    monkeypatch.setattr(sandbox, "_Process", lambda given: told)
    given = written(mine, "return 0")
    with pytest.raises(CardError) as error:
        load_sandboxed(given)
    assert said in str(error.value)


def processes() -> list[str]:
    """Return the processes of sandboxes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if PROGRAM.encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.long
def test_what_an_agent_starts_ends_with_it(mine: Path) -> None:
    """The code itself never runs in this process."""
    before, loaded = processes(), set(sys.modules)
    agent = load_sandboxed(
        written(mine, "if os.fork() == 0:\n    os.setsid()\n    time.sleep(99)\nreturn 1")
    )
    assert agent.predict(SHOWN)[0] == 1
    assert len(processes()) > len(before)
    assert not [name for name in set(sys.modules) - loaded if mine.stem in name]
    del agent
    for _ in range(100):
        if set(processes()) <= set(before):
            return
        time.sleep(0.05)
    pytest.fail(f"left: {processes()}")


@pytest.mark.long
def test_an_agent_plays_as_it_does_outside_and_remembers_nothing(mine: Path) -> None:
    """Its memory of an episode is kept; the next one begins with the agent as it was loaded."""
    chosen = "return int(observation['cluster'][0] < 0.5) if calls % 3 else 1"
    boxed, plain = (load(written(mine, chosen)) for load in (load_sandboxed, load_agent))
    shown = [{"cluster": np.full(4, share, dtype=np.float32)} for share in (0.2, 0.8, 0.4)]
    starts = np.array([[True], [False], [False]])
    first, second = (
        [int(boxed.predict(one, None, start)[0]) for one, start in zip(shown, starts, strict=True)]
        for _ in range(2)
    )
    assert first == second == [int(plain.predict(one)[0]) for one in shown] == [1, 0, 1]
    of_sandbox, outside = (
        evaluate([agent], "tiny", progress=False).values("MINE") for agent in (boxed, plain)
    )
    assert np.array_equal(of_sandbox, outside)


@pytest.mark.long
def test_workers_play_it_in_sandboxes_of_their_own(mine: Path) -> None:
    agent = load_sandboxed(written(mine, "return int(calls % 2)"))
    once, shared = (
        evaluate([agent], "synthetic-busy-weeks", weeks="1", executor=on, progress=False)
        for on in (None, "local:2")
    )
    assert np.array_equal(once.values("MINE"), shared.values("MINE"))
