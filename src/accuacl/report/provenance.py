"""Where results come from: the commands that reproduce them, the machine, versions, seeds and hours."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence

from accuacl.experiment import BUILT_IN, Config
from accuacl.report.formats.document import Code, Text
from accuacl.report.statistics.groups import Group, Row
from accuacl.report.statistics.settings import defaults

ALWAYS = ("benchmark", "learner", "strategy", "scale", "memory")


def commands(title: str, groups: Sequence[Group]) -> Code:
    """The commands that reproduce the groups; the title names what needs a plugin's file besides."""
    own = dict.fromkeys(str(g[setting]) for g in groups for setting in BUILT_IN if g[setting] not in BUILT_IN[setting])
    if own:
        title += f" (add --plugin FILE with the file that defines {', '.join(own)})"
    return Code(title, [command(group) for group in groups])


def command(group: Group) -> str:
    """One line of shell that does all runs of the group again."""
    default = defaults(group["benchmark"], group["scale"])
    words = ["accuacl", "run"]
    for name in (*ALWAYS, *(name for name in Config.model_fields if name not in (*ALWAYS, "seed"))):
        if name in ALWAYS or group[name] != default[name]:
            words += [f"--{name.replace('_', '-')}", str(group[name])]
    digest = hashlib.sha256(shlex.join(words).encode()).hexdigest()[:6]  # different runs need different directories
    out = f"runs/{digest}-"
    seeds = [str(row["seed"]) for row in group.rows]
    if len(seeds) == 1:
        return shlex.join([*words, "--seed", seeds[0], "--out", out + seeds[0]])
    return f"for seed in {' '.join(seeds)}; do {shlex.join(words)} --seed $seed --out {out}$seed; done"


def overview(rows: Sequence[Row]) -> str:
    """How many runs, which seeds and which versions, in one line."""
    versions = ", ".join(dict.fromkeys(str(row.get("version") or "unknown") for row in rows))
    seeds = _seeds(rows)
    return f"{_runs(len(rows))}, seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}, accuacl {versions}."


def facts(rows: Sequence[Row]) -> list[str]:
    """Runs, hours, seeds, versions and machines, as sentences."""
    recorded = [row["seconds_cpu"] for row in rows if row.get("seconds_cpu")]
    total = sum(recorded)
    hours = f"{total / 3600:,.2f} CPU hours" if total > 360 else f"{total:,.0f} CPU seconds"
    if len(recorded) < len(rows):
        hours = f"{hours} in the {_runs(len(recorded))} that recorded it" if recorded else "CPU time not recorded"
    said = [
        f"{_runs(len(rows))}, {hours}.",
        f"Seeds: {', '.join(_seeds(rows))}.",
        f"Versions of accuacl: {_counted(rows, 'version')}.",
        f"Machines: {_counted(rows, 'machine')}.",
    ]
    finished = sorted(str(row["finished"]) for row in rows if row.get("finished"))
    if finished:
        several = finished[0] != finished[-1]
        said.append(f"Finished between {finished[0]} and {finished[-1]}." if several else f"Finished {finished[0]}.")
    return said


def notices(rows: Sequence[Row], others: Sequence[str] = ()) -> list[Text]:
    """What must be known before anything else: the others, and the notes of the rows, each once."""
    texts = dict.fromkeys([*others, *(str(row.get("note") or "").strip() for row in rows)])
    return [Text(text if text.endswith(".") else f"{text}.", notice=True) for text in texts if text]


def _seeds(rows: Sequence[Row]) -> list[str]:
    return [str(seed) for seed in sorted({row["seed"] for row in rows})]


def _counted(rows: Sequence[Row], name: str) -> str:
    counts = Counter(str(row.get(name) or "not recorded") for row in rows)
    return "; ".join(f"{value} ({_runs(n)})" if len(counts) > 1 else value for value, n in counts.most_common())


def _runs(n: int) -> str:
    return f"{n} run{'' if n == 1 else 's'}"
