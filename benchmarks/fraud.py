"""Insurance claims, year by year: how many frauds do people see for the labels they spend?

    python benchmarks/fraud.py --data-dir DATA --seeds 0 1 2 3 4 --results docs/results/fraud.csv --table docs/fraud.md

DATA (or ACCUACL_DATA) holds tabular/fraud_oracle.csv.xz: 15,420 claims of three years, of which 6 % are frauds. Each
project is that of docs/fraud.md, with a person who always knows the answer. RESULTS gets a row for each strategy and
seed as soon as it is finished; run the same command again to resume. Columns: `found` after each round
(labels spent, frauds among them), and `ranked`: of the 500 claims that were not labelled and that the model at the end
holds to be frauds most likely, how many are.
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import os
import statistics
import tempfile
import uuid
from pathlib import Path

import numpy as np
import scipy.stats
from projects import add_to_csv, read_csv

from accuacl.labeling.project import Project, TableOptions, export, make, read_table, split_by_task

START, END = "<!-- benchmarks/fraud.py writes from here -->", "<!-- to here -->"
TRUTH, ID = "FraudFound_P", "PolicyNumber"
OPTIONS = TableOptions(id=ID, ignored=(TRUTH,), task="Year")
NAMES = {"0": "fine", "1": "fraud"}
RANKED = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("ACCUACL_DATA"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--strategies", nargs="+", default=["uniform", "uncertain-coverage", "badge", "margin"])
    parser.add_argument("--results", type=Path, default=Path("runs/fraud.csv"))
    parser.add_argument("--table", type=Path, help="Write the table into this Markdown file.")
    given = parser.parse_args()
    if given.data_dir is None:
        parser.error("give --data-dir or set ACCUACL_DATA")
    given.results.parent.mkdir(parents=True, exist_ok=True)
    for seed in given.seeds:
        for strategy in given.strategies:
            key = {"strategy": strategy, "seed": str(seed)}
            if not any(key.items() <= row.items() for row in read_csv(given.results)):
                row = key | run(Path(given.data_dir) / "tabular" / "fraud_oracle.csv.xz", strategy, seed)
                print(row, flush=True)
                add_to_csv(given.results, row)
    text = table(read_csv(given.results))
    print(text)
    if given.table:
        before, _, rest = given.table.read_text().partition(START)
        given.table.write_text(f"{before}{START}\n{text}{END}{rest.partition(END)[2]}")


def run(claims: Path, strategy: str, seed: int) -> dict[str, str]:
    """One project from its first round to its export."""
    with lzma.open(claims, "rt", newline="") as file:
        known = {row[ID]: NAMES[row[TRUTH]] for row in csv.DictReader(file)}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "claims"
        settings = make({"kind": "tables", "strategy": strategy, "seed": seed, "per_round": 50, "rounds": 4})
        Project.begin(place, settings, list(NAMES.values()), *split_by_task(read_table(claims, OPTIONS)))
        with Project.open(place) as project:
            person = project.store.person_of(project.store.add_person("script"))
            names = [name for task in project.tasks.all() for name in project.tasks.table(task.index)["name"]]
            truth = [known[name] for name in names]
            classes = {label.name: label.id for label in project.store.classes()}
            found: list[list[int]] = []
            while not project.advance().finished:
                while (pick := project.store.lease(person)) is not None:
                    project.store.label(person, pick.item, classes[truth[pick.item]], uuid.uuid4().hex)
                labels = project.store.labels()
                found.append([len(labels), sum(truth[item] == "fraud" for item in labels)])
            export(project, Path(folder) / "out", claims, "text", lambda progress: None)
            asked = {names[item] for item in project.store.labels()}
        ranked = most_likely(Path(folder) / "out" / "predictions.csv", asked)
        return {"found": json.dumps(found), "ranked": str(sum(known[name] == "fraud" for name in ranked))}


def most_likely(path: Path, asked: set[str]) -> list[str]:
    """The claims that are most likely frauds, of those that nobody was asked about."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] not in asked]
    chance = [float(row["confidence"]) if row["class"] == "fraud" else 1 - float(row["confidence"]) for row in rows]
    return [rows[i]["name"] for i in np.argsort(chance)[::-1][:RANKED]]


def table(rows: list[dict[str, str]]) -> str:
    """Frauds seen among the first labels, and in the end found by the model, for each strategy."""
    names = strategies(rows)
    after = {s: {r["seed"]: dict(json.loads(r["found"])) for r in rows if r["strategy"] == s} for s in names}
    ranked = {s: {r["seed"]: int(r["ranked"]) for r in rows if r["strategy"] == s} for s in names}
    last = max(labels for by_seed in after.values() for seen in by_seed.values() for labels in seen)
    stops = [last // 3, 2 * last // 3, last]  # where each year ends
    heads = ["strategy", "seeds", *(f"frauds in {labels} labels" for labels in stops), "frauds per 100 labels"]
    heads += ["against uniform", "p", "frauds in the 500 most suspicious"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    base = after.get("uniform", {})
    for name, by_seed in after.items():
        means = [statistics.mean(seen[labels] for seen in by_seed.values()) for labels in stops]
        both = [seed for seed in by_seed if seed in base]
        ratio, p = "", ""
        if name != "uniform" and both:
            pairs = [(by_seed[seed][last], base[seed][last]) for seed in both]
            ratio = f"{sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs):.1f} times"
            p = f"{scipy.stats.wilcoxon([ours - theirs for ours, theirs in pairs]).pvalue:.3f}"
        found = statistics.mean(ranked[name].values())
        seen = " | ".join(f"{mean:.1f}" for mean in [*means, 100 * means[-1] / last])
        lines.append(f"| {name} | {len(by_seed)} | {seen} | {ratio} | {p} | {found:.1f} |")
    return "\n".join(lines) + "\n"


def strategies(rows: list[dict[str, str]]) -> list[str]:
    """Those that were run, in the order of their first rows."""
    return list(dict.fromkeys(row["strategy"] for row in rows))


if __name__ == "__main__":
    main()
