"""Where results come from: the commands that give them again, the machine, versions, seeds and hours."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence

from accuacl import NAMES
from accuacl.experiment.config import Config
from accuacl.report.statistics.collect import Row
from accuacl.report.statistics.groups import Group, usual

ALWAYS = ("benchmark", "learner", "strategy", "scale", "memory")


def command(group: Group) -> str:
    """One line of shell that does all runs of the group again."""
    normal = usual(group["benchmark"], group["scale"])
    parts = ["accuacl", "run"]
    for name in (*ALWAYS, *(name for name in Config.model_fields if name not in (*ALWAYS, "seed"))):
        if name in ALWAYS or group[name] != normal[name]:
            parts += [f"--{name.replace('_', '-')}", str(group[name])]
    digest = hashlib.sha256(shlex.join(parts).encode()).hexdigest()[:6]  # runs that differ need other directories
    out = f"runs/{digest}-"
    seeds = [str(row["seed"]) for row in group.rows]
    if len(seeds) == 1:
        return shlex.join([*parts, "--seed", seeds[0], "--out", out + seeds[0]])
    return f"for seed in {' '.join(seeds)}; do {shlex.join(parts)} --seed $seed --out {out}$seed; done"


def again(what: str, groups: Sequence[Group]) -> str:
    """A title for the groups' commands, with what they leave out: the files of strategies that are not built in."""
    own = dict.fromkeys(str(g["strategy"]) for g in groups if g["strategy"] not in (*NAMES, "full"))
    return f"{what} (add --plugin FILE with the file of {', '.join(own)})" if own else what


def lede(rows: Sequence[Row]) -> str:
    """What is reported on, in one line."""
    seeds = sorted({row["seed"] for row in rows})
    versions = ", ".join(dict.fromkeys(str(row.get("version") or "unknown") for row in rows))
    return (
        f"{_runs(len(rows))}, seed{'s' if len(seeds) > 1 else ''} "
        f"{', '.join(str(seed) for seed in seeds)}, accuacl {versions}."
    )


def facts(rows: Sequence[Row]) -> list[str]:
    """Runs, seeds, hours, versions and machines, in words."""
    seeds = sorted({row["seed"] for row in rows})
    known = [row["seconds_cpu"] for row in rows if row.get("seconds_cpu")]
    hours = f"{sum(known) / 3600:,.2f} CPU hours" if sum(known) > 360 else f"{sum(known):,.0f} CPU seconds"
    if len(known) < len(rows):
        hours = f"{hours} in the {_runs(len(known))} that recorded it" if known else "CPU time not recorded"
    finished = sorted(str(row["finished"]) for row in rows if row.get("finished"))
    said = [
        f"{_runs(len(rows))}, {hours}.",
        f"Seeds: {', '.join(str(seed) for seed in seeds)}.",
        f"Versions of accuacl: {_counted(rows, 'version')}.",
        f"Machines: {_counted(rows, 'machine')}.",
    ]
    if finished:
        several = finished[0] != finished[-1]
        said.append(f"Finished between {finished[0]} and {finished[-1]}." if several else f"Finished {finished[0]}.")
    return said


def notes(rows: Sequence[Row]) -> list[str]:
    """What rows say that must be known before anything else, once each."""
    return list(dict.fromkeys(str(row["note"]).strip() for row in rows if str(row.get("note") or "").strip()))


def _counted(rows: Sequence[Row], name: str) -> str:
    counts = Counter(str(row.get(name) or "not recorded") for row in rows)
    return "; ".join(f"{value} ({_runs(n)})" if len(counts) > 1 else value for value, n in counts.most_common())


def _runs(n: int) -> str:
    return f"{n} run{'' if n == 1 else 's'}"
