"""Reports as files: HTML that needs no network and harms nobody, Markdown, LaTeX, CSV, and the command itself."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from accuacl.cli import main
from accuacl.experiments import Journal, learners, make, report, run
from accuacl.experiments.report import bars, curves, documents, figure_files, formats as svg, run_figures
from accuacl.experiments.report.document import FAINT, Code
from accuacl.experiments.report.groups import make_groups
from test_report_rows import grid, made_up, table, with_metrics

EVIL = '<script>alert("x")</script> & $a_b$ {c} \\input | `d` *e* #1 100%'
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """What a browser would find: all tags, that they close, ids, texts, and everything that could be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.attributes = [], [], [], [], []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == [], "all tags are closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                self.links.append(value)
            self.links += re.findall(r"url\(([^)]*)\)", value or "")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def check(text: str) -> Page:
    page = Page(text)
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in page.links), page.links
    inside = [link[1:] for link in page.links if link.startswith("#")]
    assert set(inside) <= set(page.ids), "links within the page lead somewhere"
    assert len(page.ids) == len(set(page.ids)), "ids are unique"
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert "@import" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert not re.search(r"\b(nan|NaN|inf|None)\b", page.text)
    for tag, name, value in page.attributes:
        if tag == "path" and name == "d":
            assert "nan" not in value
    return page


def everything():
    six = ["uniform", "entropy", "least-confidence", "kcenter", "badge", "accuacl"]
    rows = grid(learner=["er", "der++"], strategy=[*six, "full"], seed=[0, 1])
    rows += grid(strategy=["uniform", "accuacl", "margin"], labels=[100, 300], seed=[0, 1])
    rows += grid(strategy="accuacl", tasks=4, lam=[0.0, 0.5, 0.8], lam_from=4, seed=[0, 1])
    rows += grid(strategy=["uniform", "accuacl", "badge"], tasks=3, last_rounds=8, evaluate="round", seed=[0, 1])
    rows += grid(
        benchmark="split-cifar100", memory=500, strategy=["uniform", "accuacl"], order="tasks", order_seed=[1, 2]
    )
    return [row | {"note": "half of the images"} for row in rows]


def test_a_whole_report(tmp_path):
    path = table(tmp_path / "results.csv", everything())
    out = report.write([path], tmp_path / "report.html", title="All of it", command="accuacl paper main --scale cpu")
    page = check(out.read_text())
    assert page.tags.count("h1") == 1
    for words in (
        "All of it",
        "half of the images.",
        "Relative gain of accuacl over the paper's baselines",
        "Differences from uniform",
        "against labels per task",
        "against the weight of the past",
        "over the rounds of the last task",
        "after each task",
        "Task orders",
        "accuacl paper main --scale cpu",
        "for seed in 0 1; do accuacl run --benchmark split-cifar10 --learner er --strategy accuacl --scale cpu "
        "--memory 100 --tasks 4 --lam 0.5 --lam-from 4 --seed $seed --out runs/",
        "torch 2.9",
        "CPU seconds",
    ):
        assert words in page.text, words
    plots = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert len(plots) == sum(tag == "svg" and name == "role" for tag, name, _ in page.attributes) > 10
    assert all(len(alt) > 20 for alt in plots)
    assert page.tags.count("caption") == page.tags.count("table") > 5
    assert all((t, n) == ("th", "scope") for t, n, v in page.attributes if v in ("row", "col", "colgroup", "rowgroup"))


def test_the_same_rows_give_the_same_bytes(tmp_path):
    path = table(tmp_path / "results.csv", grid(strategy=["uniform", "accuacl", "badge"], seed=[0, 1]))
    texts = {report.write([path], tmp_path / name).read_bytes() for name in ("a.html", "b.html")}
    assert len(texts) == 1


def evil_rows():
    rows = grid(strategy=["uniform", "accuacl", EVIL], seed=[0, 1], benchmark=EVIL, learner=["er", EVIL])
    return [row | {"note": EVIL, "machine": EVIL, "version": EVIL} for row in rows]


def test_names_are_text_and_nothing_else(tmp_path):
    path = table(tmp_path / "results.csv", evil_rows())
    page = check(report.write([path], tmp_path / "r.html", title=EVIL).read_text())
    assert page.text.count('<script>alert("x")</script>') > 5
    markdown = report.write([path], tmp_path / "r.md", "md", title=EVIL).read_text()
    prose = re.sub(r"(?s)(`{3,})sh\n.*?\n\1", "", markdown)
    assert "<script" not in prose
    assert "````sh" not in markdown, "a fence is longer than what it holds, and no longer than needed"
    rows = [line for line in prose.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows if EVIL[:8] in line} <= {
        len(re.findall(r"(?<!\\)\|", line)) for line in rows if "---" in line
    }
    latex = report.write([path], tmp_path / "r.tex", "latex", title=EVIL).read_text()
    assert r"\textbackslash{}input" in latex
    outside = re.sub(r"(?m)(?<!\\)%.*$", "", latex)
    assert "\\input" not in outside.replace(r"\textbackslash{}input", "")
    assert outside.count("{") - outside.count(r"\{") == outside.count("}") - outside.count(r"\}")
    assert not re.search(r"(?<!\\)#", outside)


def test_latex_and_markdown_mark_the_best(tmp_path):
    rows = [with_metrics(made_up(strategy=s), a) for s, a in (("uniform", 1), ("entropy", 2), ("accuacl", 3))]
    path = table(tmp_path / "results.csv", rows)
    latex = report.write([path], tmp_path / "r.tex", "latex").read_text()
    assert r"\textbf{3.0}" in latex
    assert r"\underline{2.0}" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == latex.count(r"\toprule")
    markdown = report.write([path], tmp_path / "r.md", "md").read_text()
    assert "| **3.0** |" in markdown
    assert "| <ins>2.0</ins> |" in markdown


@pytest.mark.parametrize("format", report.FORMATS)
def test_the_suffix_says_what_is_written(format, tmp_path):
    path = table(tmp_path / "results.csv", [with_metrics(made_up(), 50)])
    asked = report.write([path], tmp_path / "asked", format).read_bytes()
    for suffix in report.FORMATS[format]:
        assert report.write([path], tmp_path / f"r.{suffix}").read_bytes() == asked
        assert report.write([path], tmp_path / f"R.{suffix.upper()}", format).read_bytes() == asked
    assert report.write([path], tmp_path / "r.txt", format).read_bytes() == asked


def test_csv_is_tidy(tmp_path):
    rows = [with_metrics(made_up(strategy="accuacl", memory=100, seed=s), a) for s, a in ((0, 20), (1, 22))]
    out = report.write([table(tmp_path / "results.csv", rows)], tmp_path / "r.csv", "csv")
    lines = list(csv.DictReader(out.read_text().splitlines()))
    (line,) = [line for line in lines if line["metric"] == "average_accuracy"]
    assert (float(line["mean"]), float(line["std"]), line["n"]) == (21, pytest.approx(2**0.5), "2")
    assert (line["paper_mean"], line["paper_std"], line["strategy"], line["memory"]) == (
        "20.7",
        "1.0",
        "accuacl",
        "100",
    )
    assert "seed" not in line


def test_commands_say_what_a_plugin_is_needed_for(tmp_path):
    rows = grid(strategy=["uniform", "accuacl-full", "full"])
    for strategies, command, title in (
        ([], "", "To reproduce all runs"),
        (["mine"], "", "To reproduce all runs (add --plugin FILE with the file that defines mine)"),
        (
            ["mine", "yours"],
            "accuacl sweep x",
            "To reproduce single runs (add --plugin FILE with the file that defines mine, yours)",
        ),
    ):
        report = documents.many_runs(rows + grid(strategy=strategies), command=command)
        assert [block.title for block in report.blocks if isinstance(block, Code)][-1] == title


@pytest.mark.parametrize("setting", ["learner", "memory_policy", "arrival"])
def test_learners_memory_policies_and_streams_of_plugins_are_named_too(setting):
    groups = make_groups([row | {setting: "mine"} for row in grid()])
    assert "(add --plugin FILE with the file that defines mine)" in documents.commands("Runs", groups).title


def test_one_run_is_not_several():
    rows = grid(seed=[0, 1, 2])
    rows = [rows[0] | {"machine": "mine"}, *(row | {"seconds_cpu": None} for row in rows[1:])]
    said = " ".join(documents.provenance(rows).texts)
    assert "mine (1 run)." in said
    assert "(2 runs)" in said
    assert "in the 1 run that recorded it" in said


def drawn(panel):
    """The panel's axes after it was laid out, its figure and the renderer."""
    with matplotlib.rc_context(svg.STYLE):
        figure = matplotlib.figure.Figure(figsize=panel.size, layout="constrained")
        axes = figure.subplots()
        panel.draw(axes)
        figure.canvas = FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        return axes, figure, figure.canvas.get_renderer()


def test_panels_of_seconds_share_their_scale():
    rows = [
        row | {"seconds_query": {"er": 0.1, "gss": 900.0}[row["learner"]] * (2 if row["strategy"] == "accuacl" else 1)}
        for row in grid(strategy=["uniform", "accuacl"], learner=["er", "gss"])
    ]
    panels = [panel for panel in bars.picks(make_groups(rows)).panels if "Query seconds" in panel.alt]
    ends = {drawn(panel)[0].get_xlim() for panel in panels}
    assert len(panels) == 2
    assert len(ends) == 1
    assert min(ends)[0] < 0.1
    assert min(ends)[1] > 1800


@pytest.mark.parametrize("name", ["least-confidence", "a-strategy-with-quite-a-long-name"])
def test_labels_of_bars_are_not_cut_off(name):
    for panel in bars.picks(make_groups(grid(strategy=["uniform", name]))).panels:
        axes, figure, renderer = drawn(panel)
        for text in (axes.xaxis.label, *axes.get_yticklabels()):
            box = text.get_window_extent(renderer)
            assert box.x0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.x1, text.get_text()


def test_bands_are_spoken_of_where_there_are_some():
    for seeds, said in (([0], False), ([0, 1], True)):
        caption = curves.tasks(make_groups(grid(strategy=["uniform", "accuacl"], seed=seeds))).caption
        assert ("Bands" in caption) == said


@pytest.mark.parametrize(
    "rows",
    [
        grid(strategy="accuacl"),
        grid(strategy="full"),
        grid(strategy=["uniform", "accuacl"], tasks=1),
        [made_up() | dict.fromkeys(("accuracy_matrix", "picked", "seconds_cpu", "seconds_query", "learning_accuracy"))],
        [row | {"picked": [[0, 0]] * 5, "seconds_query": 0.0} for row in grid(strategy=["uniform", "accuacl"])],
        [with_metrics(row, 0.0, 0.0) for row in grid(strategy=["uniform", "accuacl"], seed=[0, 1])],
        [row | {"order": "classes", "benchmark": "my data"} for row in grid(strategy=["uniform", "accuacl"])],
    ],
    ids=["one strategy", "only full", "one task", "columns empty", "zeros", "all equal", "own data"],
)
@pytest.mark.parametrize("format", report.FORMATS)
def test_little_is_reported_too(tmp_path, rows, format):
    out = report.write([table(tmp_path / "results.csv", rows)], tmp_path / "out", format)
    assert not re.search(r"\b(nan|inf)\b", out.read_text())
    if format == "html":
        check(out.read_text())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    settings = {"benchmark": "split-digits", "tasks": 3, "labels": 12, "rounds": 3, "epochs": 1, "evaluate": "round"}
    for strategy in ("uniform", "accuacl"):
        run(make(settings | {"strategy": strategy}), folder / strategy)
    return folder


def test_a_single_run(runs):
    out = report.write([runs / "accuacl"])
    assert out == runs / "accuacl" / "report.html"
    page = check(out.read_text())
    pictures = [link for link in page.links if link.startswith("data:image/png")]
    assert len(pictures) == 3
    for words in ("Heat map of the accuracy matrix, 3 by 3", "Picked images of task 2", "Recall of 6 classes"):
        assert any(words in value for _, _, value in page.attributes), words
    assert page.text.count("Confusion matrix at the end") == 1
    assert "Highest: " not in page.text
    for words in (
        "After each round",
        "Labels that each class of a task got",
        "--evaluate round",
        "CPU time of all steps",
    ):
        assert words in page.text, words


def test_runs_in_directories_have_their_mean_confusion_matrix(runs, tmp_path):
    page = check(report.write([runs], tmp_path / "r.html").read_text())
    assert page.text.count("Confusion matrix at the end") == 1
    assert "The 5 classes with the lowest recall at the end" in page.text
    for strategy in ("accuacl", "uniform"):
        assert any(f"Confusion matrix of 6 classes, er, {strategy}; " in value for _, _, value in page.attributes)


def test_mean_confusions_by_hand():
    confusions = [{"cat": {"cat": 3, "dog": 1}, "dog": {"dog": 4}}, {"cat": {"dog": 4}, "dog": {"cat": 1, "dog": 3}}]
    rows = [made_up(strategy="uniform", seed=s) | {"confusion": each} for s, each in enumerate(confusions)]
    figure, shown = documents._confusions(make_groups([*rows, made_up(strategy="accuacl")]))
    (panel,) = figure.panels
    assert panel.title == "er, uniform"
    assert "62 % of cat taken for dog" in panel.alt  # 5 of 8
    (group,) = shown.groups
    assert [[row.heads[0], *(cell.text for cell in row.cells)] for row in group.rows] == [
        ["cat", "37.5", "dog (62 %)"],
        ["dog", "87.5", "cat (12 %)"],
    ]
    assert documents._confusions(make_groups([made_up()])) == []


@pytest.mark.parametrize("format", ["md", "latex"])
def test_a_single_run_in_other_formats(runs, tmp_path, format):
    out = report.write([runs / "accuacl"], tmp_path / "a", format, figures=tmp_path / "f", figure_type="png")
    files = {file.name for file in (tmp_path / "f").iterdir()}
    text = out.read_text()
    assert {"picked-images-task-1.png", "result-accuracy.png"} <= files
    assert all(f"f/{name}" in text for name in files)
    for words in ("most often taken for", "All settings", "Wall-clock time of each step", "CPU time of all steps"):
        assert words in text


def test_a_single_run_of_a_users_own_strategy_without_its_data(runs, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("journal.sqlite", "config.json", "result.json"):
        text = (runs / "accuacl" / name).read_bytes()
        changed = text.replace(b'"split-digits"', b'"/gone/data"').replace(b'"accuacl"', b'"mine"')
        changed = changed.replace(b'"classes_per_task": 0', b'"classes_per_task": 2')  # which data of one's own need
        (folder / name).write_bytes(text if name == "journal.sqlite" else changed)
    page = check(report.write([folder]).read_text())
    assert "No picked images are shown: " in page.text
    assert "er with mine" in page.text


def test_a_directory_of_runs_says_what_is_not_finished(runs, tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "journal.sqlite").touch()
    table(tmp_path / "results.csv", grid(seed=[0]))
    page = check(report.write([runs, tmp_path], tmp_path / "r.html").read_text())
    assert "Left out: 1 unfinished run." in page.text
    assert "3 runs, seed 0" in page.text


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """`accuacl` as typed in an empty directory: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def typed(*arguments):
        monkeypatch.setattr(sys, "argv", ["accuacl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, error = capsys.readouterr()
        return ended.value.code or 0, out, error

    return typed


def test_the_command(command, tmp_path):
    path = table(tmp_path / "results.csv", grid(strategy=["uniform", "accuacl"]))
    for format, name in (("html", "report.html"), ("md", "report.md"), ("latex", "report.tex"), ("csv", "report.csv")):
        code, out, error = command("report", path, "--format", format)
        assert (code, error) == (0, "")
        assert out == f"Read from {path} (2 rows).\nwritten: {name}\n"
        assert (tmp_path / name).stat().st_size > 100
    assert not list(tmp_path.glob("*.part"))
    code, out, _ = command("report", "--help")
    assert code == 0


def test_figures_are_files_that_markdown_and_latex_show(command, tmp_path):
    rows = grid(strategy=["uniform", "accuacl"])
    rows += grid(strategy=["uniform", "accuacl"], tasks=3, last_rounds=8, evaluate="round")
    path = table(tmp_path / "results.csv", rows)
    begins = {"svg": b"<?xml", "pdf": b"%PDF-", "png": b"\x89PNG"}
    for format, type in (("html", "svg"), ("md", "png"), ("latex", "pdf")):
        out, folder = f"out/{type}.{format}", f"figs/{type}"
        (tmp_path / "out").mkdir(exist_ok=True)
        code, said, error = command(
            "report", path, "--format", format, "--out", out, "--figures", folder, "--figure-type", type
        )
        assert (code, error) == (0, "")
        assert said.splitlines()[2] == f"figures: {folder}"
        files = sorted((tmp_path / folder).iterdir())
        assert len(files) >= 4
        assert all(file.suffix == f".{type}" and file.read_bytes().startswith(begins[type]) for file in files)
        text = (tmp_path / out).read_text()
        links = re.findall(
            {"html": "(?!)", "md": r"\]\((.*?)\)", "latex": r"includegraphics.*?\{(.*?)\}"}[format], text
        )
        assert [tmp_path / "figs" / type / link.split("/")[-1] for link in sorted(links)] == (files if links else [])
        assert all((tmp_path / "out" / link).resolve() in files for link in links)
        assert bool(links) == (format != "html")
    setup = "split-cifar10-memory-100-1000-labels-a-task-cpu-scale"
    figure = tmp_path / "figs/svg" / f"{setup}-average-accuracy-and-forgetting-after-each-task.svg"
    assert figure.is_file()


def test_a_figure_has_all_panels_its_legend_and_no_colours_of_pages():
    groups = make_groups(grid(learner=["er", "der++"], strategy=["uniform", "accuacl"]))
    figure = curves.tasks(groups)
    assert [panel.title for panel in figure.panels] == ["er", "der++"] * 2
    text = figure_files.draw(figure, "svg").decode()
    assert text.count('id="axes_') == 4
    assert text.count("<!-- accuacl -->") == 1  # in the legend
    assert text.count("<!-- tasks learned -->") == 4
    assert FAINT not in text
    assert FAINT not in figure_files.draw(bars.picks(groups), "svg").decode()
    assert figure_files.draw(figure, "pdf") == figure_files.draw(figure, "pdf")


@pytest.mark.parametrize(
    "names", [["a strategy with quite a long name, really"] * 2, [f"strategy {i}" for i in range(14)]]
)
def test_no_legend_is_cut_off(names):
    names = [f"{name} {i}" for i, name in enumerate(names)]
    figure = curves.tasks(make_groups(grid(strategy=names)))
    plot = Figure(figsize=(6, 2))
    figure_files._add_legend(plot, figure.legend)
    box = plot.legends[0].get_window_extent(FigureCanvasAgg(plot).get_renderer())
    assert box.width <= plot.bbox.width
    assert plot.get_size_inches()[1] == pytest.approx(2 + box.height / plot.dpi)


def test_only_some_runs_are_reported(command, tmp_path):
    path = table(tmp_path / "results.csv", grid(learner=["er", "der++"], strategy=["uniform", "accuacl", "badge"]))
    arguments = ["report", path, "--format", "csv", "--only", "learner=er", "--only", "strategy=uniform,badge"]
    assert command(*arguments)[0] == 0
    rows = list(csv.DictReader((tmp_path / "report.csv").read_text().splitlines()))
    assert {(row["learner"], row["strategy"]) for row in rows} == {("er", "uniform"), ("er", "badge")}


@pytest.mark.parametrize(
    ("make_input", "arguments", "says"),
    [
        (lambda p: None, ["gone.csv"], "there is no file or folder gone.csv; give a results.csv"),
        (lambda p: (p / "empty").mkdir(), ["empty"], "empty holds no finished run and no results.csv"),
        (lambda p: (p / "a.csv").write_text(""), ["a.csv"], "a.csv is not a table of results"),
        (lambda p: (p / "a.csv").write_text("x,y\n1,2\n"), ["a.csv"], "a.csv is not a table of results"),
        (lambda p: (p / "a.csv").write_bytes(b"\xff\xfe\x00"), ["a.csv"], "a.csv"),
        (lambda p: (p / "a.csv").write_text(HEADER + "\n"), ["a.csv"], "a.csv has no rows"),
        (lambda p: (p / "a.csv").write_text(HEADER + "\nx,er,uniform,abc,1,2\n"), ["a.csv"], "a.csv, line 2"),
        (lambda p: (p / "a.csv").write_text(HEADER + "\nx,er,uniform,100,nan,2\n"), ["a.csv"], "is nan, not a number"),
        (lambda p: (p / "a.csv").write_text(HEADER + "\nx,er,uniform,100,,2\n"), ["a.csv"], "accuracy is missing"),
        (lambda p: broken(p, "{"), ["run"], "result.json is not JSON"),
        (lambda p: broken(p, "{}"), ["run"], "result.json is not a run's result (average_accuracy: Field required)"),
        (lambda p: broken(p, "[]"), ["run"], "result.json is not a run's result (it is not an object)"),
        (lambda p: broken(p, damaged(version=1)), ["run"], "(version: Input should be a valid string)"),
        (lambda p: broken(p, damaged(config={})), ["run"], "(config/benchmark: Field required)"),
        (lambda p: broken(p, damaged(accuracy_matrix=[])), ["run"], "(accuracy_matrix: List should have"),
        (lambda p: broken(p, damaged()), ["run"], "lacks what a finished run has recorded (data, result); restore it"),
        (lambda p: broken(p, damaged(), journal="empty"), ["run"], "run/journal.sqlite cannot be read"),
        (lambda p: broken(p, "{}", journal="none"), ["run"], "has a result.json but no journal.sqlite"),
        (lambda p: good(p), ["a.csv", "--format", "pdf"], "format is 'pdf'; give one of html, md, latex, csv"),
        (lambda p: good(p), ["a.csv", "--out", "no/where.html"], "there is no folder"),
        (lambda p: good(p), ["a.csv", "--out", "."], "is a folder; give the name of a file in it"),
        (lambda p: good(p), ["a.csv", "--out", "a.csv"], "is what the report is made from"),
        (lambda p: good(p), ["a.csv", "--figures", "a.csv"], "a.csv is a file; give a folder"),
        (lambda p: good(p), ["a.csv", "--figures", "f", "--figure-type", "gif"], "give one of svg, pdf, png"),
        (lambda p: good(p), ["a.csv", "--figure-type", "pdf"], "give --figures too"),
        (
            lambda p: good(p),
            ["a.csv", "--format", "latex", "--figures", "f", "--figure-type", "svg"],
            "LaTeX includes no SVG",
        ),
        (lambda p: good(p), ["a.csv", "--format", "latex", "--figures", "50%"], "LaTeX cannot include files from 50%"),
        (lambda p: kept(p), ["runs", "--format", "csv", "--out", "runs/results.csv"], "a file that runs keep"),
        (lambda p: kept(p), ["runs", "--format", "md", "--out", "runs/x/result.json"], "a file that runs keep"),
        (lambda p: costs(p), ["costs"], "costs holds no finished run and no results.csv; finish a run first"),
        (lambda p: good(p), ["a.csv", "--only", "strategy=bait"], "no run has strategy bait; the values are"),
        (lambda p: None, [], "Missing argument"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(command, tmp_path, make_input, arguments, says):
    make_input(tmp_path)
    code, out, error = command("report", *arguments)
    assert (code, out) == (2, "")
    assert says in error
    assert error.startswith("accuacl: ")
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("report.*"))
    assert not list(tmp_path.rglob("*.pdf"))


HEADER = "benchmark,learner,strategy,memory,average_accuracy,forgetting"


def good(folder):
    table(folder / "a.csv", grid(strategy=["uniform", "accuacl", "badge"], seed=[0]))


def kept(folder):
    (folder / "runs" / "x").mkdir(parents=True)
    table(folder / "runs" / "results.csv", grid(seed=[0]))


def costs(folder):
    """A folder with nothing but a table of another kind."""
    (folder / "costs").mkdir()
    (folder / "costs" / "efficiency.csv").write_text("strategy,n,cpu_seconds\nbait,10,1.0\n")


def damaged(**changes):
    """The result.json of a run of an earlier version, with changes."""
    whole = json.loads((Path(__file__).parent / "format1" / "run-done" / "result.json").read_text())
    return json.dumps(whole | changes)


def broken(folder, result, journal="begun"):
    (folder / "run").mkdir()
    (folder / "run" / "result.json").write_text(result)
    if journal == "begun":
        Journal(folder / "run", make({}), {}).close()
    elif journal == "empty":
        (folder / "run" / "journal.sqlite").touch()


def test_tables_with_only_the_needed_columns(command, tmp_path):
    (tmp_path / "a.csv").write_text(
        HEADER + "\nsplit-cifar10,er,uniform,100,10,20\nsplit-cifar10,er,accuacl,100,12,18\n"
    )
    code, _, error = command("report", "a.csv")
    assert (code, error) == (0, "")
    assert "+2.00" in check((tmp_path / "report.html").read_text()).text


def test_the_baseline_on_the_command_line(command, tmp_path):
    table(tmp_path / "a.csv", grid(strategy=["uniform", "accuacl"], learner=["er", "gss"], seed=[0, 1]))
    assert command("report", "a.csv", "--baseline", "gss", "--out", "r.md")[0] == 0
    assert "**Differences from gss, over all cells**" in (tmp_path / "r.md").read_text()
    code, _, error = command("report", "a.csv", "--baseline", "bait")
    assert code == 2
    assert "no run has the baseline 'bait'" in error


def test_a_plugins_learner_is_called_by_its_own_defaults(command, tmp_path):
    table(tmp_path / "a.csv", grid(learner="mine", alpha=3.0, seed=[0, 1]))
    (tmp_path / "mine.py").write_text(
        "from accuacl.experiments.learners import Learner, register\n"
        "@register('mine')\n"
        "class Mine(Learner):\n"
        "    settings = {'alpha': 3.0}\n"
        "    def observe(self, rows): ...\n"
        "    def remember(self): ...\n"
    )
    try:
        for plugin, label in (([], "mine, alpha 3"), (["--plugin", "mine.py"], "mine")):
            assert command("report", "a.csv", "--out", "r.md", *plugin)[0] == 0
            assert f"| {label} |" in (tmp_path / "r.md").read_text()
    finally:
        learners.REGISTRY.pop("mine", None)


def test_confusions_by_hand():
    confusion = {"cat": {"cat": 3, "dog": 6, "fox": 1}, "dog": {"dog": 4}, "fox": {"cat": 2, "dog": 2}}
    figure, shown = documents._confusion_blocks({"": confusion}, ["cat", "dog", "fox"], 24)
    rows = {row.heads[0]: [cell.text for cell in row.cells] for row in shown.groups[0].rows}
    assert list(rows) == ["fox", "cat", "dog"]  # the worst first
    assert rows["cat"] == ["30.0", "dog (60 %), fox (10 %)"]
    assert rows["fox"] == ["0.0", "cat (50 %), dog (50 %)"]
    assert rows["dog"] == ["100.0", "-"]
    assert "60 % of cat taken for dog" in figure.panels[0].alt


def test_commands_do_not_load_what_draws(tmp_path):
    slow = {"matplotlib", "fastapi", "uvicorn", "ray"}
    commands = "import accuacl.cli.sweep, accuacl.cli.report, accuacl.cli.project_state"
    seen = f"import sys; {commands}; print([m for m in sys.modules if m.split('.')[0] in {slow}])"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_figures_are_as_wide_as_the_page_and_only_wider_ones_scroll():
    few = [[90.0] * (t + 1) + [None] * (4 - t) for t in range(5)]
    many = [[90.0] * (t + 1) + [None] * (39 - t) for t in range(40)]
    confused = {name: dict.fromkeys("0123456789", 1) for name in "0123456789"}
    for figure, pixels in (
        (run_figures.recall(dict.fromkeys("0123456789", 50.0), 5), 1152),
        (run_figures.picks([[3, 5]] * 5), 1152),
        (run_figures.heat_map(few), 1152),
        (run_figures.confusions({"": confused}, list(confused)), 1152),
        (run_figures.heat_map(many), 1747),
    ):
        (panel,) = figure.panels
        opening, _, _ = svg.svg_panel(panel, "p", figure.columns).partition(">")
        assert f'style="width:{pixels}px"' in opening
        assert ('class="scrolls"' in opening) == (pixels > 1152)
    style = (Path(report.__file__).parent / "page.css").read_text()
    assert re.findall(r"([^{};]*)\{ max-width: none; \}", style) == [" svg.scrolls "]
