"""Notes about settings and streams that are allowed but seldom meant, given before a run begins.

The measured effects quoted here come from measured.csv: mean differences over paired seeds in points of average
accuracy and of forgetting, from the table that each line names.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from accuacl.experiments.config import Config, looks_at_sample
from accuacl.experiments.data import BENCHMARKS, Dataset, Stream, Task, natural
from accuacl.experiments.learners import REGISTRY
from accuacl.experiments.setting import OPTION_SETTINGS, groups_of, is_class_incremental, uses
from accuacl.strategies import WITHOUT_MEMORY, takes_sample

NAMED = 5  # classes that a sentence names
CIFAR = {"split-cifar10": 10, "split-cifar100": 100}  # and their classes
BEST = "--strategy coverage --memory-policy coverage"


def advice(config: Config, given: Collection[str] = ()) -> list[str]:
    """Sentences about the settings of a run. given: those that were chosen, unlike the benchmark's defaults.

    >>> from accuacl.experiments import make
    >>> advice(make({"strategy": "badge+memory", "memory": 0}))
    ['badge+memory keeps away from the replay memory, and --memory is 0: it picks as badge does.']
    """
    fixed = REGISTRY[config.learner].fixed
    sentences = [
        f"--{name.replace('_', '-')} {getattr(config, name)} makes no difference to {config.learner}."
        for name in fixed
        if name in given and getattr(config, name) != fixed[name]
    ]
    strategy, memory = config.strategy, config.memory
    if strategy in WITHOUT_MEMORY and not memory:
        sentences.append(
            f"{strategy} keeps away from the replay memory, and --memory is 0: it picks as "
            f"{WITHOUT_MEMORY[strategy]} does."
        )
    if uses(strategy, "lam") and strategy != "accuacl-full" and not memory:  # which sees all of the past
        sentences.append(f"{strategy} weighs the past by the replay memory, and --memory is 0: it sees no past.")
    sentences += _ignored(config)
    papers = strategy == "accuacl" and memory and config.memory_policy == "paper"
    measured = _measured(config, strategy, "uniform"), _measured(config, "coverage", "accuacl") if papers else []
    worse, better = ([row for row in rows if _holds(row, config)] for rows in measured)
    if worse:
        sentences.append(
            f"with {config.learner}, {strategy} was {_points(worse, 'accuracy')} points less accurate than uniform on "
            f"{_where(worse)}; try {BEST} beside it."
        )
    if better:
        more = "more" if float(better[0]["forgetting"]) > 0 else "less"
        sentences.append(
            f"accuacl is the paper's strategy; with {config.learner}, {BEST} was {_points(better, 'accuracy')} points "
            f"more accurate on {_where(better)}, and forgot {_points(better, 'forgetting')} points {more}."
        )
    if any(measured) and not worse and not better:
        unlike = "strategies were compared at cpu scale, not at paper scale"
        if config.scale != "paper":
            unlike = "with so few labels, so small a memory or other data"
        sentences.append(
            f"{unlike}: nothing that was measured is better than uniform everywhere; see docs/strategies.md."
        )
    if config.tasks > 1:  # of a whole stream `stream_notes` says it, which has counted its tasks
        sentences += _memory_of_everything(config, config.tasks, config.labels * config.tasks)
    if config.scale == "smoke" and config.benchmark not in BENCHMARKS:
        sentences.append("--scale smoke only tries whether everything works; --scale cpu trains long enough to learn.")
    return sentences


def _ignored(config: Config) -> list[str]:
    """Sentences about settings that are options of other strategies.

    >>> from accuacl.experiments import make
    >>> _ignored(make({"strategy": "uniform", "sample": 5}))
    ["uniform has no option 'sample'; --sample is ignored."]
    """
    strategy, sentences = config.strategy, []
    for name in (*OPTION_SETTINGS, "sample"):
        used = looks_at_sample(dict(config)) if name == "sample" else uses(strategy, name)
        if not used and getattr(config, name) != Config.model_fields[name].default:
            sentences.append(f"{strategy} has no option {name!r}; --{name} is ignored.")
    return sentences


def _measured(config: Config, strategy: str, than: str) -> list[dict[str, str]]:
    """What was measured of a strategy with such settings, compared with another; digits say nothing of other data."""
    return [
        row
        for row in _table()
        if (row["learner"], row["strategy"], row["than"]) == (config.learner, strategy, than)
        and config.labels <= int(row["labels"])
        and (row["benchmark"] != "split-digits" or config.benchmark == "split-digits")
    ]


def _holds(row: Mapping[str, str], config: Config) -> bool:
    """Whether a run may expect the same: on the same data, or on CIFAR's other set with nearly as many labels.

    Its memory is at least as large, on the other set for each class, and its scale is not the paper's, where nets and
    epochs are others, unless that was measured.
    """
    own, other = config.benchmark, row["benchmark"]
    if config.scale == "paper" != row["scale"]:
        return False
    if own == other:
        return config.memory >= int(row["memory"])
    if own not in CIFAR or other not in CIFAR:
        return False
    return 2 * config.labels >= int(row["labels"]) and config.memory * CIFAR[other] >= int(row["memory"]) * CIFAR[own]


@cache
def _table() -> list[dict[str, str]]:
    with (Path(__file__).parent / "measured.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _points(rows: Sequence[Mapping[str, str]], metric: str) -> str:
    return " and ".join(row[metric].removeprefix("-") for row in rows)


def _where(rows: Sequence[Mapping[str, str]]) -> str:
    """The data, scale, labels, memories and seeds; lines of one comparison differ in data and memory alone."""
    benchmarks, memories = (" and ".join(row[name] for row in rows) for name in ("benchmark", "memory"))
    labels = f"{int(rows[0]['labels']):,} labels a task"
    return f"{benchmarks} ({rows[0]['scale']} scale, {labels}, memory {memories}, {rows[0]['seeds']} seeds)"


def stream_notes(config: Config, stream: Stream, tasks: Sequence[Task]) -> list[str]:
    """Notes about a stream of which `tasks` are learned."""
    data, sentences = stream.dataset, []
    classes = len(data.classes)
    groups = groups_of(config, classes)
    if groups is not None and config.order in ("fixed", "tasks", "classes"):
        left = sorted(set(range(classes)) - {c for group in groups for c in group})
        if left:
            each = len(groups[0])
            fits = [str(n) for n in range(2, classes) if classes % n == 0]
            remedy = f"--classes-per-task {' or '.join(fits)} takes all" if fits else "--order names those to take"
            sentences.append(
                f"{classes} classes do not make whole tasks of {each}: {_named(stream, left)} left out; {remedy}."
            )
    sentences += _order_by_name(data) if config.arrival == "given" else []
    inside = {c for task in tasks for c in task.classes}
    tested = np.concatenate([data.test.labels[task.test] for task in tasks])
    trained = np.concatenate([data.train.labels[task.train] for task in tasks])
    for what, rows in (("test", tested), ("training", trained)):
        without = sorted(inside - set(np.unique(rows).tolist()))
        if without:
            end = "accuracy says nothing about" if what == "test" else "the model never learns"
            sentences.append(f"{_named(stream, without)} without {what} examples; {end} {_it(without)}.")
    if config.strategy == "full":
        return sentences
    largest = max(len(task.train) for task in tasks)
    largest = min(config.pool, largest) if config.pool else largest
    if config.sample and looks_at_sample(config.model_dump()) and largest > config.sample:
        who = config.strategy if takes_sample(config.strategy) else "coverage"  # which chooses the first round
        sentences.append(
            f"{who} looks at a random sample of {config.sample:,} of a task's examples, which are up to "
            f"{largest:,}; --sample 0 looks at all, which takes far longer."
        )
    small = sum(len(task.train) <= config.labels for task in tasks)
    if not is_class_incremental(config.model_dump()) and 2 * small > len(tasks):
        sentences.append(
            f"{small} of {len(tasks)} tasks have no more than {config.labels} examples, so that all of these are "
            "labelled whatever the strategy; give fewer --labels to see what the strategy does."
        )
    if not config.tasks and len(tasks) > 1:
        sentences += _memory_of_everything(
            config, len(tasks), sum(min(config.labels, len(task.train)) for task in tasks)
        )
    return sentences


def _memory_of_everything(config: Config, tasks: int, labels: int) -> list[str]:
    entry = REGISTRY[config.learner]
    if config.strategy == "full" or config.memory < labels or entry.exact or "memory" in entry.fixed:
        return []
    return [
        f"a memory of {config.memory} keeps all {labels} labels of the {tasks} tasks, so that little can be forgotten; "
        "a smaller --memory makes strategies differ more."
    ]


def _order_by_name(dataset: Dataset) -> list[str]:
    """A note where the names of tasks have no numbers: in the order of their names, April comes before March.

    >>> from accuacl.experiments.data import Split
    >>> split = Split(np.zeros((3, 1)), np.zeros(3, np.int64), {"task": np.array(["May", "June", "July"])})
    >>> _order_by_name(Dataset("mine", split, split, ("cat",)))[0]
    'the tasks come in the order of their names: July, June, May; give numbers to them if another one is meant.'
    """
    names = sorted(map(str, np.unique(dataset.train.columns["task"])), key=natural)
    if len(names) < 2 or all(re.search(r"\d", name) for name in names):
        return []
    shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    return [f"the tasks come in the order of their names: {shown}; give numbers to them if another one is meant."]


def _named(stream: Stream, classes: Collection[int]) -> str:
    """The classes by name, and a verb.

    >>> from accuacl.experiments.data import class_incremental, load
    >>> _named(class_incremental(load("digits"), 5), [3]), _named(class_incremental(load("digits"), 5), [3, 7])
    ('class 3 is', 'classes 3, 7 are')
    """
    names = [stream.dataset.classes[c] for c in classes]
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return f"class {shown} is" if len(names) == 1 else f"classes {shown} are"


def _it(classes: Collection[int]) -> str:
    return "it" if len(classes) == 1 else "them"
