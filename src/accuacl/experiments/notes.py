"""Notes, given before a run begins, about settings and streams that are allowed but rarely intended.

The effects that they quote are in measured.csv: mean differences over paired seeds, in points of average accuracy and
of forgetting, each from the table that its line names.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from accuacl.base.errors import listed
from accuacl.experiments import models
from accuacl.experiments.config import Config, looks_at_sample
from accuacl.experiments.data import BENCHMARKS, Dataset, Stream, Task, natural
from accuacl.experiments.learners import REGISTRY
from accuacl.experiments.strategy_options import OPTION_SETTINGS, uses
from accuacl.experiments.stream_settings import groups_of, is_class_incremental
from accuacl.strategies import WITHOUT_MEMORY, takes_sample

NAMED = 5  # classes or tasks that a sentence names
BEST = "--strategy coverage --memory-policy coverage"


def advice(config: Config, given: Collection[str] = ()) -> list[str]:
    """Sentences about the settings of a run. given: those that the user chose, without the benchmark's defaults.

    >>> from accuacl.experiments import make
    >>> advice(make({"strategy": "badge+memory", "memory": 0}))
    ['badge+memory keeps away from the replay memory, and --memory is 0: it picks as badge does.']
    """
    learner, strategy = config.learner, config.strategy
    sentences = [
        f"--{name.replace('_', '-')} {getattr(config, name)} makes no difference to {learner}."
        for name, fixed in REGISTRY[learner].fixed.items()
        if name in given and getattr(config, name) != fixed
    ]
    if not config.memory and strategy in WITHOUT_MEMORY:
        usual = WITHOUT_MEMORY[strategy]
        sentences.append(f"{strategy} keeps away from the replay memory, and --memory is 0: it picks as {usual} does.")
    if not config.memory and uses(strategy, "lam") and strategy != "accuacl-full":  # which sees all of the past
        sentences.append(f"{strategy} weighs the past by the replay memory, and --memory is 0: it sees no past.")
    sentences += _ignored(config) + _measured(config)
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


def _measured(config: Config) -> list[str]:
    """What was measured with this strategy, learner and benchmark, at least as many labels and no larger memory. If
    that was not measured, it says that nothing was better than uniform everywhere.

    All measurements are of networks trained from scratch; none is at paper scale, which has other networks and epochs.
    """
    learner, strategy, sentences = config.learner, config.strategy, []
    if config.model in models.FROZEN:
        return []
    against_uniform = [row for row in _table() if (row["strategy"], row["than"]) == (strategy, "uniform")]
    papers = config.memory > 0 and config.memory_policy == "paper"
    against_best = [row for row in _table() if row["than"] == strategy and papers]
    rows = [row for row in against_uniform + against_best if row["learner"] == learner]
    for row in rows:
        labels, memory, points = int(row["labels"]), int(row["memory"]), row["accuracy"].removeprefix("-")
        if row["benchmark"] != config.benchmark or config.scale == "paper":
            continue
        if config.labels > labels or config.memory < memory:
            continue
        where = f"{row['benchmark']} ({row['scale']} scale, {labels:,} labels a task, memory {memory}, "
        where += f"{row['seeds']} seeds)"
        if row["than"] == "uniform":
            worse = f"{strategy} was {points} points less accurate than uniform on {where}"
            sentences.append(f"with {learner}, {worse}; try {BEST} beside it.")
        else:
            better = f"{BEST} was {points} points more accurate than {strategy} on {where}"
            more = "more" if float(row["forgetting"]) > 0 else "less"
            sentences.append(
                f"with {learner}, {better}, and forgot {row['forgetting'].removeprefix('-')} points {more}."
            )
    if rows and not sentences:
        instead = "" if config.benchmark == "split-digits" else "for images, --model pretrained is far more accurate; "
        sentences.append(
            "for networks trained from scratch, nothing that was measured is better than uniform on every data set; "
            f"{instead}see docs/strategies.md."
        )
    return sentences


@cache
def _table() -> list[dict[str, str]]:
    with (Path(__file__).parent / "measured.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stream_notes(config: Config, stream: Stream, tasks: Sequence[Task]) -> list[str]:
    """Notes about a stream of which `tasks` are learned."""
    sentences = _left_out(config, stream) + _untested(stream, tasks)
    if config.arrival == "given":
        sentences = _order_by_name(stream.dataset) + sentences
    if config.strategy == "full":
        return sentences
    largest = max(len(task.train) for task in tasks)
    largest = min(config.pool, largest) if config.pool else largest
    if config.sample and looks_at_sample(dict(config)) and largest > config.sample:
        who = config.strategy if takes_sample(config.strategy) else "coverage"  # which chooses the first round
        sentences.append(
            f"{who} looks at a random sample of {config.sample:,} of a task's examples, which are up to "
            f"{largest:,}; --sample 0 looks at all, which takes far longer."
        )
    small = sum(len(task.train) <= config.labels for task in tasks)
    if not is_class_incremental(dict(config)) and 2 * small > len(tasks):
        sentences.append(
            f"{small} of {len(tasks)} tasks have no more than {config.labels} examples, so that all of these are "
            "labelled whatever the strategy; give fewer --labels to see what the strategy does."
        )
    if not config.tasks and len(tasks) > 1:
        labels = sum(min(config.labels, len(task.train)) for task in tasks)
        sentences += _memory_of_everything(config, len(tasks), labels)
    return sentences


def _left_out(config: Config, stream: Stream) -> list[str]:
    """A note if the classes cannot be divided into whole tasks."""
    classes = len(stream.dataset.classes)
    groups = groups_of(config, classes)
    if groups is None or config.order not in ("fixed", "tasks", "classes"):
        return []
    left = sorted(set(range(classes)) - {c for group in groups for c in group})
    if not left:
        return []
    fits = [str(n) for n in range(2, classes) if classes % n == 0]
    remedy = f"--classes-per-task {' or '.join(fits)} takes all" if fits else "--order names those to take"
    names = listed([stream.dataset.classes[c] for c in left], NAMED)
    return [f"{classes} classes do not make whole tasks of {len(groups[0])}; left out: {names}; {remedy}."]


def _untested(stream: Stream, tasks: Sequence[Task]) -> list[str]:
    """Notes about classes of the tasks that have no test examples, or no training examples.

    >>> from accuacl.experiments.data import benchmark_tasks, load, make_stream
    >>> stream = make_stream(load("digits"), benchmark_tasks("split-digits", 10))
    >>> _untested(stream, list(stream))
    []
    """
    data, sentences = stream.dataset, []
    classes = {c for task in tasks for c in task.classes}
    tested = np.concatenate([data.test.labels[task.test] for task in tasks])
    trained = np.concatenate([data.train.labels[task.train] for task in tasks])
    for labels, what, effect in (
        (tested, "test", "accuracy says nothing about them"),
        (trained, "training", "the model never learns them"),
    ):
        without = sorted(classes - set(np.unique(labels).tolist()))
        if without:
            names = listed([data.classes[c] for c in without], NAMED)
            sentences.append(f"classes without {what} examples: {names}; {effect}.")
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
    """A note if tasks are in the order of names without numbers, in which April comes before March.

    >>> from accuacl.experiments.data import Split
    >>> split = Split(np.zeros((3, 1)), np.zeros(3, np.int64), {"task": np.array(["May", "June", "July"])})
    >>> _order_by_name(Dataset("mine", split, split, ("cat",)))[0]
    'the tasks come in the order of their names: July, June, May; give numbers to them if another one is meant.'
    """
    names = sorted(map(str, np.unique(dataset.train.columns["task"])), key=natural)
    if len(names) < 2 or all(re.search(r"\d", name) for name in names):
        return []
    shown = listed(names, NAMED)
    return [f"the tasks come in the order of their names: {shown}; give numbers to them if another one is meant."]
