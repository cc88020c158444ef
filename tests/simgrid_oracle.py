"""Ask SimGrid when parallel tasks end: `/usr/bin/python3 tests/simgrid_oracle.py < case.json`.

A case is as in `tests/data/locality/simgrid-cases.json`: eight clusters of 16 hosts, and jobs with
their starts and hosts. Prints their completion times as JSON. One process asks one case, since
SimGrid has one engine per process. Needs the module `simgrid` (Debian: python3-simgrid, 3.32).
"""

import json
import sys
import tempfile

CLUSTERS = range(8)


def platform_of(case):
    """Return SimGrid's description of the platform, in XML."""
    lines = [
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1"><zone id="g" routing="Full">',
    ]
    duplex, latency = case.get("duplex", "SPLITDUPLEX"), case["lat"]
    for k in CLUSTERS:
        lines.append(
            f'<cluster id="c{k}" prefix="h" suffix="" radical="{16 * k}-{16 * k + 15}" '
            f'router_id="r{k}" speed="{case["cp"][k]}f" bw="{case["bw_c"][k]}Bps" '
            f'lat="{latency}s" sharing_policy="{duplex}" bb_bw="{case["bw_s"][k]}Bps" '
            'bb_lat="0s" bb_sharing_policy="SHARED"/>'
        )
    lines.append(
        f'<link id="bb" bandwidth="{case["bw_b"]}Bps" latency="{latency}s" '
        'sharing_policy="SHARED"/>'
    )
    lines += [
        f'<zoneRoute src="c{i}" dst="c{j}" gw_src="r{i}" gw_dst="r{j}">'
        '<link_ctn id="bb"/></zoneRoute>'
        for i in CLUSTERS
        for j in CLUSTERS
        if i < j
    ]
    return "\n".join([*lines, "</zone></platform>"])


def completion_times(case):
    """Let SimGrid run the jobs of a case; return when each ends, s."""
    from simgrid import Actor, Engine, Host, this_actor

    engine = Engine(["oracle", "--cfg=host/model:ptask_L07", "--log=root.thres:warning"])
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(platform_of(case))
        file.flush()
        engine.load_platform(file.name)
    ends = [0.0] * len(case["jobs"])

    def run(number):
        job = case["jobs"][number]
        n = len(job["hosts"])
        if job["start"]:
            this_actor.sleep_until(job["start"])
        hosts = [Host.by_name(f"h{host}") for host in job["hosts"]]
        sent = [0.0 if i == j else job["bytes"] for i in range(n) for j in range(n)]
        this_actor.parallel_execute(hosts, [job["flop"]] * n, sent)
        ends[number] = Engine.clock

    for number in range(len(ends)):
        Actor.create(f"j{number}", Host.by_name("h0"), run, number)
    engine.run()
    return ends


if __name__ == "__main__":
    print(json.dumps(completion_times(json.load(sys.stdin))))
