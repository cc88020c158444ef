"""Run AccaSim on the files of `research.peers`; its own interpreter runs this file.

    PYTHON accasim_driver.py DISPATCHER FOLDER

AccaSim writes the schedule into the folder. This prints its version and the CPU time, as JSON.
Reading and scheduling are timed; start-up is not, nor the output, which a child process writes.
"""

import collections
import json
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version

LINES = {
    "format": "{job};{start};{nodes}",
    "attributes": {
        "job": ("id", "str"),
        "start": ("start_time", "int"),
        "nodes": ("assigned_nodes", "str"),
    },
}
"""A line of its output per job: id, start, and the node of each chunk."""


def main(dispatcher: str, folder: str) -> None:
    """Simulate the jobs of a folder on its machine."""
    vars(collections)["Mapping"] = Mapping  # AccaSim 1.1.3 looks where Python before 3.10 had it
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    dispatchers = {"FirstInFirstOut": FirstInFirstOut, "EASYBackfilling": EASYBackfilling}
    start = time.process_time()
    simulator = Simulator(
        f"{folder}/jobs.swf",
        f"{folder}/system.json",
        dispatchers[dispatcher](FirstFit()),
        statistics_output=False,
        RESULTS_FOLDER_PATH=folder,
        SCHEDULE_OUTPUT=LINES,
    )
    simulator.start_simulation()
    print(json.dumps({"version": version("accasim"), "cpu_s": time.process_time() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
