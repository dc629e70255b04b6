"""`accuacl select`, and the files of ids that it leaves out."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

from accuacl.base.errors import InputError, listed
from accuacl.base.files import reading
from accuacl.cli.options import Address, EngineName, IdColumn, OptionWords, Plugin, Workers, with_strategy_options
from accuacl.cli.screen import console, drawn
from accuacl.experiments.data import read_table
from accuacl.strategies import BUILT_IN, BY_LABEL, load_plugins, read_options, split_options, takes_sample, usual_sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from accuacl.pools import Picked

LABEL = "label"  # the usual column of classes
LEAST_BYTES = 2**20  # of --memory-limit
BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@with_strategy_options(without=("memory_limit",))
def select(
    *,
    pool: Annotated[
        list[str], typer.Option(help="The pool, Parquet: a file, a folder, or a pattern in quotes; may be repeated.")
    ],
    budget: Annotated[int, typer.Option(min=0, help="How many rows to pick.")],
    out: Annotated[Path, typer.Option(help="The file to write the picks to: .parquet, .csv or .jsonl.")],
    strategy: Annotated[str, typer.Option(help=f"How to pick: {', '.join(BUILT_IN)}.")] = "accuacl",
    memory: Annotated[
        list[str] | None, typer.Option(help="Parquet with the replay memory's embeddings and probabilities.")
    ] = None,
    past: Annotated[
        int | None,
        typer.Option(min=0, help="With --memory: total number of examples, labelled or not, in all finished tasks."),
    ] = None,
    labelled: Annotated[
        list[str] | None,
        typer.Option(help="Parquet with examples of this task that are already labelled and not in the pool."),
    ] = None,
    label_column: Annotated[
        str,
        typer.Option(
            help="For direct and anchoral: the column of --labelled with the class numbers (positions in the "
            "probabilities, from 0). Default: label, if that column exists; otherwise the model's predictions are used."
        ),
    ] = "",
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            help="Rows of the pool that are already labelled: a text file with one id per line, or a .csv, .jsonl or "
            ".parquet with a column id, such as earlier picks; may be repeated."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="For strategies that draw at random, such as uniform and badge.")
    ] = 0,
    workers: Workers = 0,
    engine: EngineName = "local",
    address: Address = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="For strategies that need the whole pool at once: memory for it, such as 500MB or 16GiB (default: "
            "4GiB, if free)."
        ),
    ] = None,
    id_column: IdColumn = "id",
    embedding_column: Annotated[str, typer.Option(help="The Parquet column that holds the embeddings.")] = "embedding",
    probability_column: Annotated[
        str, typer.Option(help="The Parquet column that holds the probabilities.")
    ] = "probability",
    plugin: Plugin = None,
    trust_ids: Annotated[
        bool,
        typer.Option("--trust-ids", help="Skip the check for duplicate ids, which takes time if ids are not in order."),
    ] = False,
    option: OptionWords = None,
    **given: Any,
) -> None:
    """Pick what to label next from a pool of any size in Parquet files, exactly as in memory.

    Every row has an id (whole number or text), an embedding (the input of the model's last linear layer) and
    probabilities (its softmax), as `accuacl embed` writes them; coverage, kcenter and typiclust need no probabilities.
    uniform, entropy, least-confidence, margin, accuacl with its ablations and accuacl+uniform read the pool in parts,
    in memory that does not grow with it. So does coverage, which chooses from a random sample of a large pool: 5,000
    rows, or 20 per pick if that is more (--sample; 0: the whole pool). All others need the whole pool at once.

    `accuacl select --pool 'pool/*.parquet' --memory memory.parquet --past 1000000 --budget 1000 --out picked.csv`
    """
    load_plugins(plugin or ())
    options = _options(strategy, option or (), given)  # wrong ones are refused before pyarrow is loaded
    if takes_sample(strategy):
        options.setdefault("sample", usual_sample(budget))
    from accuacl.pools import Columns, check_place, select as select_from, write_picks

    check_place(out, exclude or (), pool=pool, memory=memory or (), labelled=labelled or ())
    classes = _classes(strategy, labelled or (), label_column, bool(exclude))
    start = time.perf_counter()
    with drawn(_Speed(), TimeRemainingColumn()) as draw:
        picked = select_from(
            pool,
            strategy,
            budget=budget,
            labelled=labelled or None,
            memory=memory or None,
            past=past,
            seed=seed,
            exclude=[id_ for file in exclude or () for id_ in read_ids(file, id_column)],
            columns=Columns(id_column, embedding_column, probability_column),
            engine=engine,
            workers=workers,
            address=address,
            memory_limit=_bytes(memory_limit) if memory_limit else None,
            trust_ids=trust_ids,
            progress=draw,
            classes=classes,
            **options,
        )
    write_picks(out, picked)
    seconds = time.perf_counter() - start
    _note_unknown(picked, exclude or ())
    left_out = f", {picked.excluded:,} left out" if exclude else ""
    sample = (takes_sample(strategy) and options.get("sample")) or picked.rows
    part = f" from a random sample of {sample:,} (--sample 0: from all)" if sample < picked.rows else ""
    console.print(f"{len(picked):,} of {picked.rows:,} picked by {strategy}{part}{left_out}: {escape(str(out))}")
    console.print(f"[dim]{seconds:.1f} s, {picked.rows / seconds:,.0f} rows/s[/dim]")


class _Speed(ProgressColumn):
    """Rows per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} rows/s" if task.speed else "")


def _classes(strategy: str, labelled: Sequence[str], column: str, excludes: bool) -> NDArray[np.int64] | None:
    """The classes of the labelled examples, if they are given, and a note where predictions take their place."""
    from accuacl.pools import NoClasses, read_labels

    if column and not labelled:
        raise InputError("--label-column is a column of --labelled; give --labelled too, or leave it out.")
    classes = why = None
    if labelled and (column or strategy in BY_LABEL):
        try:
            classes = read_labels(labelled, column or LABEL)
        except NoClasses as error:
            if column:
                raise
            why = str(error)
    if excludes and strategy in BY_LABEL and not why:
        why = "the classes of rows that --exclude leaves out are not known."
    if why:
        typer.echo(f"note: {why} {strategy} takes for their classes what the model predicts.", err=True)
    return classes


def _note_unknown(picked: Picked, exclude: Sequence[Path]) -> None:
    """Note which of the ids to leave out are not in the pool, most likely those of another pool."""
    if not picked.unknown:
        return
    files = " and ".join(map(str, exclude))
    if picked.excluded:
        total = picked.unknown + picked.excluded
        text = f"{picked.unknown:,} of the {total:,} ids in {files} are not in the pool."
    else:
        alike = f", which has ids like {picked.ids[0]}" if len(picked) else ""
        text = f"nothing was left out: none of the {picked.unknown:,} ids in {files} is in the pool{alike}."
    typer.echo(f"note: {text}", err=True)


def _options(strategy: str, words: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """The strategy's options, typed: those of `--option NAME=VALUE`, and those that have an option of their own."""
    named, own = split_options(words), {name: value for name, value in given.items() if value is not None}
    for name in named.keys() & own.keys():
        raise InputError(f"{name} is given by --option and by --{name.replace('_', '-')}; give one of them.")
    return read_options(strategy, named | own)


def _bytes(size: str) -> int:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", size, re.IGNORECASE)
    count = int(float(match[1]) * BYTES[match[2].upper()]) if match else -1
    if count < 0 or 0 < count < LEAST_BYTES:  # nobody means so few bytes
        raise InputError(f"memory-limit is {size!r}; give at least 1MiB, with the unit, such as 500MB or 2GiB.")
    return count


USUAL = "id"  # what the picks call the ids, whatever the pool calls them
TABLES = (".csv", ".jsonl", ".parquet")


def read_ids(path: Path, id_column: str) -> list[Any]:
    """The ids in a file: of a table those in the column `id_column`, or else `id`; of other text the lines.

    A .csv of one column without that header is a list too.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet" and path.is_file():
        from accuacl.pools import GROUP_ROWS, open_parquet, read  # only here: they load pyarrow

        parquet = open_parquet(str(path))
        name = _name(path, id_column, parquet.schema_arrow.names)
        batches = read(str(path), parquet, None, [name], GROUP_ROWS)
        ids = [id_ for batch in batches for id_ in batch.column(0).to_pylist()]
    else:
        lines = _lines(path)
        if suffix not in (".csv", ".jsonl") or not lines or (suffix == ".csv" and _is_list(lines[0], id_column)):
            return lines
        table = read_table(path)
        name = _name(path, id_column, table.names)
        ids = table.values(name)
    if missing := sum(id_ is None for id_ in ids):
        raise InputError(f"{path}: {missing:,} of {len(ids):,} rows have no {name}; fill it in or drop them.")
    return ids


def _lines(path: Path) -> list[str]:
    if not path.exists():
        raise InputError(f"there is no file {path}; write the ids to leave out there, one per line.")
    try:
        with reading(path):
            lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not text; write the ids to leave out there, one per line, or a table that ends in "
            f"{', '.join(TABLES)}."
        ) from None
    return [line for line in (line.rstrip("\r") for line in lines) if line.strip()]


def _is_list(header: str, id_column: str) -> bool:
    """Whether the first line of a .csv is an id and not the names of columns."""
    by_delimiter = [next(csv.reader([header], delimiter=delimiter), []) for delimiter in ",;\t|"]
    return len(by_delimiter[0]) == 1 and not any({id_column, USUAL} & set(names) for names in by_delimiter)


def _name(path: Path, id_column: str, names: Sequence[str]) -> str:
    for name in (id_column, USUAL):
        if name in names:
            return name
    raise InputError(
        f"{path} has no column {id_column!r} (columns: {listed(names)}); rename the id column to {USUAL!r}."
    )
