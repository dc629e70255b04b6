"""Figures of a single run: its accuracies, its classes, its stream, its picks and the images that were picked."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.experiments import Config, Row, read_config, read_steps
from accuacl.experiments.report.curves import BLUE, BY_STRATEGY, ORANGE
from accuacl.experiments.report.document import FAINT, INK, Figure, Panel, Picture
from accuacl.experiments.report.measures import MAIN_METRICS, METRICS, after_tasks, number, over_rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 24  # an axis names its classes if there are at most this many
WIDE = (7.4, 2.6)  # width and height in inches of a figure with a bar for each class
ROUNDS, EACH = 3, 12  # how many rounds a sheet of picked images shows, and how many picks of each
SIDE, GAP = 32, 2  # the side of an image on such a sheet and the gap between two, in pixels

Counts = Mapping[str, Mapping[str, int]]  # {class: {predicted class: how many test examples}}
Picks = dict[int, dict[int, list[int]]]  # {task: {round: the picks in the order of selection}}


def heat_map(matrix: Sequence[Sequence[float | None]]) -> Figure:
    """Draw the accuracy on each task (across) after each task (down)."""
    values = np.array([[np.nan if x is None else x for x in line] for line in matrix], float)
    tasks = [str(task + 1) for task in range(len(matrix))]
    last = ", ".join(number(x) for x in values[-1])
    alt = (
        f"Heat map of the accuracy matrix, {len(tasks)} by {len(tasks)}. After the last task, accuracy on each task is "
        f"{last}."
    )
    side = max(2.4, 0.8 + 0.42 * len(tasks))
    draw = _map(values, tasks, tasks, "on task", "after task", digits=1)
    return _alone("Accuracy (%) on each task after each task.", draw, alt, (side + 0.6, side))


def confusions(by_name: Mapping[str, Counts], classes: Sequence[str]) -> Figure:
    """Draw the share of each class's test examples (down) that was taken for each class (across), in percent.

    by_name: the counts of several groups of runs by name, to be drawn side by side, or of a single run under "".
    """
    panels = [_confusion_panel(name, counts, classes) for name, counts in by_name.items()]
    caption = "Confusion matrix at the end: test examples of each class by the predicted class (%); white: none."
    caption += " Mean over seeds." if any(by_name) else ""
    return Figure(caption, panels, columns=2 if any(by_name) and len(classes) <= NAMED // 2 else 1)


def _confusion_panel(title: str, counts: Counts, classes: Sequence[str]) -> Panel:
    table = np.array([[counts.get(name, {}).get(other, 0) for other in classes] for name in classes], float)
    shares = 100 * table / np.maximum(table.sum(axis=1, keepdims=True), 1)

    off = shares.copy()
    np.fill_diagonal(off, 0)
    true, predicted = divmod(int(off.argmax()), len(classes))
    of_group = f", {title}" if title else ""
    alt = (
        f"Confusion matrix of {len(classes)} classes{of_group}; the largest confusion: {off.max():.0f} % of "
        f"{classes[true]} taken for {classes[predicted]}."
    )
    side = max(2.6, 1.4 + 0.32 * len(classes))
    draw = _map(np.where(table > 0, shares, np.nan), classes, classes, "predicted", "true class")
    return Panel(title, draw, alt, (side + 0.6, side))


def curves(row: Row) -> list[Figure]:
    """Draw average accuracy and forgetting over tasks, and over rounds if these were tested."""
    rounds = [len(accuracies) for accuracies in row.get("round_accuracy") or []]
    new_tasks = np.cumsum(rounds).tolist()[:-1]
    over_tasks, all_rounds = [], []
    for metric in MAIN_METRICS:
        values = after_tasks(row, metric)
        over_tasks += _curve(metric, values, len(row["accuracy_matrix"]), "tasks learned")
        values = [value for task in range(len(rounds)) for value in over_rounds(row, metric, task)]
        all_rounds += _curve(metric, values, sum(rounds), "round, over all tasks", new_tasks)
    figures = [
        Figure("After each task.", over_tasks, columns=2),
        Figure("After each round; lines: a new task begins.", all_rounds, columns=2),
    ]
    return [figure for figure in figures if figure.panels]


def _curve(metric: str, values: Sequence[float], last: int, xlabel: str, lines: Sequence[int] = ()) -> list[Panel]:
    """Return a panel if there are points to connect. Forgetting begins later than accuracy; both end at `last`."""
    if len(values) < 2:
        return []

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for end in lines:
            axes.axvline(end + 0.5, color=FAINT, linewidth=1)
        axes.plot(range(last + 1 - len(values), last + 1), values, **BY_STRATEGY["accuacl"].arguments())
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(METRICS[metric].name)

    return [Panel("", draw, f"{METRICS[metric].name}, {xlabel}: from {number(values[0])} to {number(values[-1])}.")]


def recall(by_class: Mapping[str, float], tasks: int) -> Figure:
    """Draw the recall of every class in order of arrival, in alternating colours if each task has its own classes.

    tasks: how many tasks there are; 1 if tasks share classes.
    """
    names, values = list(by_class), list(by_class.values())
    each = max(1, len(names) // max(1, tasks))

    def draw(axes: Axes) -> None:
        _draw_bars(axes, names, values, [(BLUE, ORANGE)[i // each % 2] for i in range(len(names))])
        if len(names) > NAMED and tasks > 1:
            starts = range(0, len(names), each)
            axes.set_xticks([start + (each - 1) / 2 for start in starts], [str(i + 1) for i in range(len(starts))])
            axes.set_xlabel("task")
        axes.set_ylim(0, 100)
        axes.set_ylabel("recall (%)")

    low, middle, high = np.quantile(values, (0, 0.5, 1))
    alt = f"Recall of {len(names)} classes: lowest {low:.0f} %, median {middle:.0f} %, highest {high:.0f} %."
    colours = ", tasks in alternating colours" if tasks > 1 else ""
    return _alone(f"Recall at the end, classes in order of arrival{colours}.", draw, alt)


def forgetting(by_class: Mapping[str, float]) -> Figure:
    """Draw the points of recall that each class has lost since its task was learned; negative ones are gains."""
    names, values = list(by_class), list(by_class.values())

    def draw(axes: Axes) -> None:
        _draw_bars(axes, names, values, [BLUE] * len(names))
        axes.axhline(0, color=INK, linewidth=1)
        axes.set_ylabel("forgetting (points)")

    low, middle, high = np.quantile(values, (0, 0.5, 1))
    alt = f"Forgetting of {len(names)} classes: lowest {low:.0f}, median {middle:.0f}, highest {high:.0f} points."
    caption = "Forgetting of each class since its task was learned, mean over the earlier tasks that test it."
    return _alone(caption, draw, alt)


def picks(picked: Sequence[Sequence[int]]) -> Figure:
    """Draw how many labels each class got in its task, beside an even share."""

    def draw(axes: Axes) -> None:
        for t, counts in enumerate(picked):
            even = sum(counts) / len(counts)
            x = t + 1 + (np.arange(len(counts)) - (len(counts) - 1) / 2) * 0.7 / max(1, len(counts))
            axes.plot([t + 0.6, t + 1.4], [even, even], color=INK, linewidth=1)
            axes.vlines(x, even, list(counts), color=BLUE, linewidth=1)
            axes.plot(x, counts, color=BLUE, marker="o", linestyle="", markersize=4)
        axes.set_ylim(0, 1.08 * max(max(counts) for counts in picked))  # so that a point at the top is not cut off
        axes.set_xticks(range(1, len(picked) + 1))
        axes.grid(False, axis="x")
        axes.set_xlabel("task")
        axes.set_ylabel("labels of a class")

    ranges = [f"task {t + 1} from {min(counts)} to {max(counts)}" for t, counts in enumerate(picked)]
    alt = f"Labels that classes got: {', '.join(ranges)}."
    caption = "Labels that each class of a task got, classes in order of arrival; the line is an even share."
    return _alone(caption, draw, alt)


def recall_by_task(tasks: Sequence[Mapping[str, float]]) -> Figure:
    """Draw each class's final recall (down) in the tests of each task (across), white where it is not tested."""
    names = list(dict.fromkeys(name for by_class in tasks for name in by_class))
    values = np.array([[by_class.get(name, np.nan) for by_class in tasks] for name in names])

    columns = [str(t + 1) for t in range(len(tasks))]
    draw = _map(values, names, columns, "in the tests of task", "class")
    means = ", ".join(f"{np.mean(list(by_class.values())):.0f}" for by_class in tasks)
    alt = (
        f"Map of the recall of {len(names)} classes by {len(tasks)} tasks; mean over the classes of each task: {means}."
    )
    caption = "Recall at the end of each class in the tests of each task; white: it is not tested there."
    return _alone(caption, draw, alt, _map_size(len(names), len(tasks)))


def stream_map(pools: Sequence[Sequence[int]], classes: Sequence[str]) -> Figure:
    """Draw how many examples of each class (down) each task (across) has. pools: for each task, a count by class."""
    counts = np.array(pools, float).T
    columns = [str(t + 1) for t in range(len(pools))]
    draw = _map(np.where(counts >= 1, counts, np.nan), classes, columns, "task", "class", largest=counts.max())
    present = int((counts > 0).sum(axis=0).max())
    alt = (
        f"Map of {len(classes)} classes by {len(pools)} tasks; the largest pool of a class has {counts.max():.0f} "
        f"examples, a task has up to {present} classes."
    )
    caption = "The stream: examples of each class in each task's pool; the darker, the more; white: none."
    return _alone(caption, draw, alt, _map_size(len(classes), len(pools)))


def _map(
    values: NDArray[Any],
    rows: Sequence[str],
    columns: Sequence[str],
    xlabel: str,
    ylabel: str,
    digits: int = 0,
    largest: float = 0,
) -> Callable[[Axes], None]:
    """Return a function that draws coloured cells, white for NaN, with names and values only if there are few rows.

    largest: the largest count; colours are then logarithmic, because some pools are far larger than others. 0: the
    values are percentages.
    """

    def draw(axes: Axes) -> None:
        from matplotlib.colors import LogNorm, Normalize

        norm: Any = LogNorm(1, max(2.0, largest)) if largest else Normalize(0, 100)
        axes.pcolormesh(np.ma.masked_invalid(values), cmap="cividis_r" if largest else "cividis", norm=norm)
        axes.set_xticks(np.arange(len(columns)) + 0.5, list(columns))
        axes.set_yticks(np.arange(len(rows)) + 0.5 if len(rows) <= NAMED else [], rows if len(rows) <= NAMED else [])
        for r, c in zip(*np.nonzero(np.isfinite(values)), strict=True) if len(rows) <= NAMED else ():
            shade = float(norm(values[r, c]))
            color = "black" if (shade < 0.5 if largest else shade > 0.55) else "white"
            text = number(values[r, c], digits)
            axes.text(c + 0.5, r + 0.5, text, ha="center", va="center", color=color, fontsize=8 if digits else 7)
        axes.invert_yaxis()
        axes.grid(False)
        axes.tick_params(length=0)
        axes.tick_params(axis="x", rotation=45 if max(map(len, columns)) > 3 else 0)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)

    return draw


def _draw_bars(axes: Axes, names: Sequence[str], values: Sequence[float], colors: Sequence[str]) -> None:
    """Draw a bar for each class, with its name if there are few classes."""
    axes.bar(range(len(names)), values, color=colors, width=0.8)
    if len(names) <= NAMED:
        axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 3 else 0)
    else:
        axes.set_xlabel("class")
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.grid(False, axis="x")


def _alone(caption: str, draw: Callable[[Axes], None], alt: str, size: tuple[float, float] = WIDE) -> Figure:
    return Figure(caption, [Panel("", draw, alt, size)], columns=1)


def _map_size(rows: int, columns: int) -> tuple[float, float]:
    return min(7.4, 1.6 + 0.42 * columns), min(4.5, 0.9 + 0.2 * rows)


def contact_sheets(run: Path, data_dir: Path | None) -> tuple[list[Picture], str]:
    """Return a picture for each task, or a sentence that says why there is none."""
    from accuacl.experiments import open_stream  # imported here because it loads torch

    try:
        config = read_config(run / "config.json", Config)
        picks, recorded = _journal(run / "journal.sqlite")
        # The settings are not validated: the strategy may come from a plugin that is not loaded here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the run has already given warnings about its data
            stream = open_stream(Config.model_construct(**config), data_dir, False)
        data = stream.dataset
        if list(data.train.inputs.shape) != recorded["train"]["shape"]:
            raise InputError("the data found here are not those of the run; give its --data-dir.")
        first = _image(data.train.inputs[0], config["benchmark"])
    except InputError as error:
        return [], str(error)
    if first is None:
        return [], "the examples are vectors, not images."
    pictures = []
    for task, rounds in picks.items():
        chosen = sorted({int(r) for r in np.linspace(0, len(rounds) - 1, min(ROUNDS, len(rounds)))})
        shown = {r: list(rounds.values())[r][:EACH] for r in chosen}
        names = [data.classes[c] for c in stream[task].classes]
        rows = [[_image(data.train.inputs[i], config["benchmark"]) for i in ids] for ids in shown.values()]
        alt = "; ".join(
            f"round {r + 1}: {', '.join(data.classes[data.train.labels[i]] for i in ids)}" for r, ids in shown.items()
        )
        numbers = ", ".join(str(r + 1) for r in shown)
        few = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        title = f"Task {task + 1} ({few}): the first picks of round {numbers}, a row each"
        pictures.append(Picture(title, _png(rows), f"Picked images of task {task + 1}. {alt}."))
    return pictures, ""


def _journal(path: Path) -> tuple[Picks, dict[str, Any]]:
    """Return the first picks of every round, and the journal's record of the data."""
    picks: Picks = {}
    recorded: dict[str, Any] = {}
    for step in read_steps(path, "data", "query"):
        if step.task is None or step.round is None:
            recorded = step.result
        else:
            picks.setdefault(step.task, {})[step.round] = step.result["ids"][:EACH]
    return picks, recorded


def _image(example: NDArray[Any], benchmark: str) -> NDArray[np.uint8] | None:
    """Return the example as SIDE x SIDE x 3 bytes; None if it is not an image."""
    from PIL import Image

    if benchmark == "split-digits":  # 8 x 8 numbers from 0 to 1: white to black
        example = np.repeat(np.uint8(255 * (1 - np.asarray(example).reshape(8, 8, 1))), 3, axis=2)
    if example.ndim != 3:
        return None
    small = np.array(example, np.uint8)
    if small.shape[:2] != (SIDE, SIDE):
        kind = Image.Resampling.NEAREST if small.shape[0] < SIDE else Image.Resampling.LANCZOS
        small = np.asarray(Image.fromarray(small).resize((SIDE, SIDE), kind))
    return small


def _png(rows: list[list[NDArray[np.uint8] | None]]) -> bytes:
    """Return a PNG file of the images side by side on a transparent ground, with a row for each round."""
    from PIL import Image

    step = SIDE + GAP
    sheet = np.zeros((len(rows) * step - GAP, max(len(row) for row in rows) * step - GAP, 4), np.uint8)
    for y, row in enumerate(rows):
        for x, image in enumerate(row):
            if image is not None:
                sheet[y * step : y * step + SIDE, x * step : x * step + SIDE] = np.dstack(
                    [image, np.full((SIDE, SIDE), 255)]
                )
    data = io.BytesIO()
    Image.fromarray(sheet, "RGBA").save(data, "PNG", optimize=True)
    return data.getvalue()
