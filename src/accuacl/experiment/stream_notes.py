"""What a stream leaves out or cannot show, said before a run begins; nothing is refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from accuacl.data import Dataset, Stream, Task, natural
from accuacl.experiment.config import Config
from accuacl.experiment.stream_settings import groups_of, is_tidy

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

    >>> from accuacl.data import Split
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

    >>> from accuacl.data import class_incremental, load
    >>> _named(class_incremental(load("digits"), 5), [3]), _named(class_incremental(load("digits"), 5), [3, 7])
    ('class 3 is', 'classes 3, 7 are')
    """
    names = [stream.dataset.classes[c] for c in classes]
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return f"class {shown} is" if len(names) == 1 else f"classes {shown} are"


def _it(classes: Collection[int]) -> str:
    return "it" if len(classes) == 1 else "them"
