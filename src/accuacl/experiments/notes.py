"""What is known about settings that work together badly, said before a run begins; nothing is refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from accuacl.experiments.config import Config, options_for
from accuacl.experiments.data import BENCHMARKS, Dataset, Stream, Task, natural
from accuacl.experiments.stream_settings import groups_of, is_tidy
from accuacl.strategies import WITHOUT_MEMORY

BEHIND_UNIFORM = {  # by how many points on CIFAR-10 and CIFAR-100: docs/results/cpu.csv, three seeds
    "entropy": "9.8 and 4.6", "least-confidence": "7.3 and 4.8", "bait": "6.7", "badge": "3.6 and 2.5",
    "kcenter": "3.5 and 3.7",
}  # fmt: skip
BETTER_THAN_ACCUACL = {  # coverage with its memory policy, by learner: docs/results/study, ten seeds and p < 0.01
    "der++": "6.3 and 3.1 points more accurate on CIFAR-10 and CIFAR-100, though accuacl forgot less there",
    "er-ace": "8.1 points more accurate on CIFAR-10 (five seeds)",
    "er": "9.8 points more accurate on the digits",
}
FEW_LABELS = 1000  # of a task, with which these were measured


def advice(config: Config) -> list[str]:
    """Sentences about the settings of a run.

    >>> from accuacl.experiments import make
    >>> advice(make({"strategy": "badge+memory", "memory": 0}))
    ['badge+memory keeps away from the replay memory, and --memory is 0: it picks as badge does.']
    """
    sentences = []
    strategy, memory = config.strategy, config.memory
    if strategy in WITHOUT_MEMORY and not memory:
        sentences.append(
            f"{strategy} keeps away from the replay memory, and --memory is 0: it picks as "
            f"{WITHOUT_MEMORY[strategy]} does."
        )
    if "lam" in options_for(strategy) and strategy != "accuacl-full" and not memory:  # which sees all of the past
        sentences.append(f"{strategy} weighs the past by the replay memory, and --memory is 0: it sees no past.")
    if config.learner == "der++" and strategy in BEHIND_UNIFORM and config.labels <= FEW_LABELS:
        where = "CIFAR-10" if strategy == "bait" else "CIFAR-10 and CIFAR-100"
        sentences.append(
            f"with der++ and up to {FEW_LABELS} labels a task {strategy} was {BEHIND_UNIFORM[strategy]} points less "
            f"accurate than uniform on {where}; try --strategy coverage with --memory-policy coverage beside it."
        )
    better = BETTER_THAN_ACCUACL.get(config.learner, "") if strategy == "accuacl" else ""
    like_those = config.labels <= FEW_LABELS and (config.learner != "er" or config.benchmark == "split-digits")
    if better and like_those and memory and config.memory_policy == "paper":
        sentences.append(
            f"accuacl is the paper's strategy; with {config.learner}, --strategy coverage --memory-policy coverage was "
            f"{better}."
        )
    tasks = config.tasks  # of a whole stream `stream_notes` says it, which has counted its tasks
    if strategy != "full" and tasks > 1 and memory >= config.labels * tasks:
        sentences.append(
            f"a memory of {memory} keeps all labels of {tasks} tasks of {config.labels}, so that little can be "
            "forgotten; a smaller --memory makes strategies differ more."
        )
    if config.scale == "smoke" and config.benchmark not in BENCHMARKS:
        sentences.append("--scale smoke only tries whether everything works; --scale cpu trains long enough to learn.")
    return sentences


NAMED = 5  # classes that a sentence names


def stream_notes(config: Config, stream: Stream, tasks: Sequence[Task]) -> list[str]:
    """Sentences about a stream, of which `tasks` are learned."""
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
    small = sum(len(task.train) <= config.labels for task in tasks)
    if config.strategy != "full" and not is_tidy(config.model_dump()) and 2 * small > len(tasks):
        sentences.append(
            f"{small} of {len(tasks)} tasks have no more than {config.labels} examples, so that all of these are "
            "labelled whatever the strategy; give fewer --labels to see what the strategy does."
        )
    total = sum(min(config.labels, len(task.train)) for task in tasks)
    if config.strategy != "full" and config.tasks == 0 and len(tasks) > 1 and config.memory >= total:
        sentences.append(
            f"a memory of {config.memory} keeps all {total} labels of the {len(tasks)} tasks, so that little can be "
            "forgotten; a smaller --memory makes strategies differ more."
        )
    return sentences


def _order_by_name(dataset: Dataset) -> list[str]:
    """Where the names of tasks have no numbers, such as those of months, their order may not be the one that is meant.

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
