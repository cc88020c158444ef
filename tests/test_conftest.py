"""What tests set of their own, so that no parent decides how they end."""

import subprocess
import sys
from pathlib import Path

HOSTILE = """
import os, signal, sys, time
ends = {signal.SIGINT, signal.SIGTERM}
for end in ends:
    signal.signal(end, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, ends)
os.umask(0o077)
os.close(0)
os.environ.update(TERM="dumb", COLUMNS="30", TZ="America/St_Johns")
time.tzset()
import conftest
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
assert not signal.pthread_sigmask(signal.SIG_BLOCK, set()) & ends
assert os.umask(0) == 0o022
assert os.fstat(0)
assert not {"TERM", "COLUMNS", "TZ"} & set(os.environ)
assert time.timezone == 0
"""


def test_tests_do_not_depend_on_signals_files_and_variables_of_what_started_them() -> None:
    command = [sys.executable, "-c", HOSTILE]
    ended = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
