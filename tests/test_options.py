"""A strategy's options: declared in its signature, and given everywhere: in Python, to commands, in YAML, in sweeps."""

from __future__ import annotations

import json
import math
from typing import Annotated, Literal

import numpy as np
import pytest
import typer
import yaml

from accuacl import Features, select
from accuacl.base.errors import InputError
from accuacl.cli import load
from accuacl.experiments import OPTION_SETTINGS, Config, canonical, make, read_csv
from accuacl.experiments.strategy_options import options_for, uses
from accuacl.experiments.sweeps import run_name, runs_of
from accuacl.strategies import BUILT_IN, REGISTRY, Option, Query, Selection, check_options, options_of, read_options
from accuacl.strategies.registry import declared_options
from commands import accuacl, forgetting
from journals import records
from pool_files import write

PLUGIN = '''
from typing import Annotated, Literal
import numpy as np
from accuacl.strategies import Option, Query, Selection, register

@register("heated")
def heated(query: Query, *, heat: Annotated[float, Option("how far to look", least=0, most=2)] = 1.0,
           side: Literal["first", "last"] = "first", depth: int = 3, cold: bool = False) -> Selection:
    """The first or last rows of the pool."""
    rows = np.arange(len(query.pool))
    rows = rows if side == "first" else rows[::-1]
    return Selection(rows[: query.count].copy(), {"heat": np.full(query.count, heat + depth + cold)})
'''
SMALL = ("--tasks=2", "--labels=8", "--rounds=2", "--epochs=1", "--pool=40", "--memory=4")


@pytest.fixture
def plugin(tmp_path):
    (tmp_path / "heat.py").write_text(PLUGIN)
    with forgetting():
        yield tmp_path / "heat.py"


def declared(function):
    return {name: (option.kind, option.optional, option.default) for name, option in declared_options(function).items()}


def test_kinds_come_from_annotations_or_else_from_defaults():
    def mine(
        query: Query,
        ratio: float,
        *more,
        count: int | None = None,
        kind: Annotated[Literal["a", "b"], Option("which of two")] = "a",
        plain=0.5,
        whole=3,
        flag=True,
        anything=None,
        rows: list[int] | None = None,
        **others,
    ) -> Selection: ...

    assert declared(mine) == {
        "ratio": (float, False, declared_options(mine)["ratio"].default),
        "count": (int, True, None),
        "kind": (str, False, "a"),
        "plain": (float, False, 0.5),
        "whole": (int, False, 3),
        "flag": (bool, False, True),
        "anything": (None, True, None),
        "rows": (None, True, None),
    }
    assert declared_options(mine)["kind"].help == "which of two"
    assert declared_options(mine)["kind"].choices == ("a", "b")


def test_annotations_that_only_type_checkers_know_do_not_matter():
    def mine(query: "Nobody", *, heat: "AlsoNobody" = 0.5): ...  # noqa: F821, UP037

    assert declared(mine) == {"heat": (None, False, 0.5)}


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (Option(kind=float), "1e-3", 1e-3),
        (Option(kind=int, least=1), "3", 3),
        (Option(kind=str), "3", "3"),
        (Option(kind=bool), "True", True),
        (Option(), "3", 3),
        (Option(), "0.5", 0.5),
        (Option(), "true", True),
        (Option(), "some", "some"),
    ],
)
def test_text_is_read_by_the_kind_of_the_option(option, text, value):
    read = option.read(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        (Option(name="a", kind=float, least=0, most=1), 1.5, "a is 1.5; give a number from 0 to 1."),
        (Option(name="a", kind=float), math.nan, "a is nan; give a number."),
        (Option(name="a", kind=float), True, "a is True; give a number."),
        (Option(name="a", kind=float), "0.5", "a is '0.5'; give a number."),
        (Option(name="a", kind=int, least=1), 2.0, "a is 2.0; give a whole number of at least 1."),
        (Option(name="a", kind=int), None, "a is None; give a whole number."),
        (Option(name="a", kind=str, choices=("x", "y")), "z", "a is 'z'; give 'x' or 'y'."),
        (Option(name="a", kind=bool), 1, "a is 1; give false or true."),
    ],
)
def test_what_the_declaration_does_not_allow_is_refused(option, value, says):
    with pytest.raises(InputError) as error:
        option.check(value)
    assert str(error.value) == says


@pytest.mark.parametrize("value", [np.float32(0.5), np.int64(1), 1])
def test_numbers_of_numpy_are_numbers(value):
    checked = Option(name="a", kind=float, most=1).check(value)
    assert checked == value
    assert type(checked) is float


@pytest.mark.parametrize("strategy", BUILT_IN)
def test_every_option_has_a_kind_a_default_that_it_allows_and_help(strategy):
    for option in options_of(strategy).values():
        assert option.kind is not None
        assert option.check(option.default) == option.default
        assert option.help
        assert not option.help.endswith(".")


def test_settings_that_are_options_have_what_is_declared():
    for name, (strategy, unset) in OPTION_SETTINGS.items():
        field = Config.model_fields[name]
        assert field.default == unset
        assert options_of(strategy)[name].help in field.description
    assert {name for name in OPTION_SETTINGS if uses("accuacl", name)} == {"variant", "keep", "lam", "oversample"}


def test_select_takes_a_plugins_options_and_checks_them(plugin):
    pool = Features(np.eye(6, 2), np.full((6, 2), 0.5))
    with forgetting():
        exec(PLUGIN, {})
        assert select("heated", pool=pool, budget=2, side="last", heat=2).scores["heat"].tolist() == [5, 5]
        for given, says in (
            (
                {"heta": 1},
                r"heated has no option 'heta'; did you mean heat\? Its options are heat, side, depth, cold\.",
            ),
            ({"heat": 3}, "heat is 3; give a number from 0 to 2"),
            ({"side": "middle"}, "side is 'middle'; give 'first' or 'last'"),
            ({"depth": 0.5}, r"depth is 0\.5; give a whole number"),
            ({"cold": 1}, "cold is 1; give false or true"),
        ):
            with pytest.raises(InputError, match=says):
                select("heated", pool=pool, budget=2, **given)
        assert check_options("heated", {"heat": 1}) == {"heat": 1.0}
        assert read_options("heated", {"heat": "1", "cold": "true"}) == {"heat": 1.0, "cold": True}


def scores(run):
    """The values of the score of the plugin that a run recorded."""
    queries = records(run / "journal.sqlite", "*/001/query").values()
    return {value for query in queries for value in query["scores"]["heat"]}


def test_a_run_takes_a_plugins_options_and_writes_them_down(plugin, tmp_path):
    command = ("run", *SMALL, "--strategy=heated", "--plugin", plugin)
    ended = accuacl(*command, "--option", "heat=0.5", "--option", "cold=true", "--out", "a", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert scores(tmp_path / "a") == {4.5}
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert config["options"] == {"heat": 0.5, "cold": True}
    assert json.loads((tmp_path / "a" / "result.json").read_text())["config"]["options"] == {"heat": 0.5, "cold": True}
    ended = accuacl(*command, "--option", "heat=0.6", "--out", "a", cwd=tmp_path)
    assert (ended.returncode, "holds a run with the option cold True, not unset; choose" in ended.stderr) == (2, True)
    ended = accuacl(*command, "--option", "heat=0.6", "--option", "cold=true", "--out", "a", cwd=tmp_path)
    assert (ended.returncode, "holds a run with the option heat 0.5, not 0.6; choose" in ended.stderr) == (2, True)
    (tmp_path / "heat.yaml").write_text(yaml.safe_dump({"options": {"heat": 0.5, "cold": True}}))
    again = accuacl(*command, "--config", "heat.yaml", "--out", "a", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    shown = accuacl(*command, "--config", "heat.yaml", "--option", "heat=2", "--print-config", cwd=tmp_path)
    assert yaml.safe_load(shown.stdout)["options"] == {"heat": 2.0, "cold": True}
    report = accuacl("report", "a", "--out", "a.md", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "heated, heat=0.5 cold=True" in (tmp_path / "a.md").read_text()
    assert "--option heat=0.5 --option cold=True" in (tmp_path / "a.md").read_text()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--strategy=heated", "--option=heta=1"], "heated has no option 'heta'; did you mean heat?"),
        (["--strategy=heated", "--option=heat=hot"], "heat is 'hot'; give a number from 0 to 2."),
        (["--strategy=heated", "--option=heat=1", "--option=heat=2"], "--option heat is given twice; give one value."),
        (["--strategy=uniform", "--option=heat=1"], "uniform has no option 'heat'; it has no options."),
        (["--strategy=full", "--option=heat=1"], "full labels everything and has no option 'heat'; leave it out."),
        (["--strategy=accuacl", "--option=total_classes=3"], "total_classes is set automatically; leave it out."),
        (["--strategy=heated", "--option=heat=-1"], "heat is -1; give a number from 0 to 2."),
        (["--strategy=accuacl+uniform", "--share=2"], "share is 2.0; give a number from 0 to 1."),
        (["--strategy=accuacl+uniform", "--option=share=2"], "share is 2; give a number from 0 to 1."),
        (["--strategy=accuacl", "--keep=-1"], "keep is -1; give a whole number of at least 0."),
        (["--ridge=2"], "there is no option --ridge; give --option ridge=VALUE (see accuacl run --help)."),
        (
            ["--strategy=coverage", "--option=sample=3"],
            "sample is 3, but 4 are to be picked from it; give several times",
        ),
        (["--first-round=coverage", "--sample=3"], "sample is 3, but 4 are to be picked from it; give several times"),
        (["--noise=alike"], "--noise alike says which answers are wrong, and --label-noise how many; give both."),
    ],
)
def test_a_wrong_option_of_a_run_is_refused(plugin, tmp_path, more, says):
    ended = accuacl("run", *SMALL, "--plugin", plugin, "--out", "a", *more, cwd=tmp_path)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert not (tmp_path / "a").exists()


def test_options_that_are_settings_become_them():
    given = make({"strategy": "accuacl", "options": {"lam": "0.5", "keep": None, "oversample": 3}})
    assert given == make({"strategy": "accuacl", "lam": 0.5, "oversample": 3.0})
    assert make({"strategy": "fisher-ratio", "options.uncertainty": "ignored"}).uncertainty == "ignored"
    bait = make({"strategy": "bait", "options": {"ridge": 0.1, "oversample": 3}})
    assert (bait.oversample, bait.options) == (3.0, {"ridge": 0.1})
    assert options_for(bait.model_dump(), "bait") == {"oversample": 3.0, "ridge": 0.1}
    assert "options" not in make({}).model_dump()


def test_an_option_at_its_default_is_the_same_run():
    usual, given = (make({"strategy": "fisher-ratio"} | more) for more in ({}, {"options": {"ridge": 1.0}}))
    assert canonical(given.model_dump()) == usual.model_dump()
    other = make({"strategy": "fisher-ratio", "options": {"ridge": 2.0}})
    assert canonical(other.model_dump())["options"] == {"ridge": 2.0}
    assert run_name(other, None).endswith("-ridge=2.0")
    assert "ridge" not in canonical(make({"strategy": "uniform"}).model_dump())


@pytest.mark.parametrize(
    "options", [{"options": {"sample": [20, 30]}}, {"options.sample": [20, 30]}, {"options": {"sample": [20, 30, 20]}}]
)
def test_a_list_of_an_options_values_is_an_axis_of_a_sweep(options):
    runs = runs_of({"strategy": ["uniform", "coverage"], "seeds": [0, 1]} | options)
    chosen = [(run.config.strategy, run.config.sample, run.config.options) for run in runs if run.config.seed == 0]
    assert chosen == [("uniform", 0, {}), ("coverage", 20, {}), ("coverage", 30, {})]
    with pytest.raises(
        InputError, match=r"strategies uniform, coverage has the option 'smaple'; did you mean sample\?"
    ):
        runs_of({"strategy": ["uniform", "coverage"], "options": {"smaple": [1]}})


def test_a_sweep_over_an_option_has_its_values_in_the_table_and_is_not_done_again(plugin, tmp_path):
    settings = {"benchmark": "split-digits", "tasks": 1, "labels": 4, "rounds": 2, "epochs": 1, "pool": 20, "memory": 2}
    settings |= {"strategy": ["uniform", "heated"], "options": {"heat": [0.5, 1.0]}}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(settings))
    command = ("sweep", "sweep.yaml", "--plugin", plugin, "--out", "runs")
    ended = accuacl(*command, cwd=tmp_path, width=200)
    assert ended.returncode == 0, ended.stderr
    assert "heated, heat=0.5" in ended.stdout
    rows = read_csv(tmp_path / "runs" / "results.csv")
    assert sorted((row["strategy"], str(row.get("options"))) for row in rows) == [
        ("heated", "None"),  # 1.0 is its default
        ("heated", "{'heat': 0.5}"),
        ("uniform", "None"),
    ]
    before = (tmp_path / "runs" / "results.csv").read_bytes()
    again = accuacl(*command, "--only", "options=heat=0.5", cwd=tmp_path, width=200)
    assert again.returncode == 0, again.stderr
    assert "1 of 1 runs" in again.stdout
    assert (tmp_path / "runs" / "results.csv").read_bytes() == before


def test_selecting_from_parquet_takes_a_plugins_options(plugin, tmp_path):
    write(tmp_path / "pool.parquet", np.arange(30), Features(np.eye(30, 4), np.full((30, 2), 0.5)))
    command = ("select", "--pool", "pool.parquet", "--budget", 3, "--strategy", "heated", "--plugin", plugin)
    ended = accuacl(*command, "--option", "side=last", "--option", "heat=0.5", "--out", "a.csv", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "a.csv").read_text().splitlines() == ["id,rank,heat", "29,1,3.5", "28,2,3.5", "27,3,3.5"]
    ended = accuacl(*command, "--option", "heat=9", "--out", "a.csv", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "accuacl: heat is 9; give a number from 0 to 2.\n")


def test_a_project_takes_options_of_its_strategy(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(f"text {i}" for i in range(20)))
    command = ("project", "new", "p", "--texts", "texts.txt", "--strategy", "accuacl+uniform")
    ended = accuacl(*command, "--option", "shrae=0.3", cwd=tmp_path)
    assert ended.returncode == 2
    assert "accuacl+uniform has no option 'shrae'; did you mean share?" in ended.stderr
    assert not (tmp_path / "p").exists()
    ended = accuacl(*command, "--option", "share=0.3", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "p" / "config.json").read_text())["options"] == {"share": 0.3}


@pytest.mark.parametrize(
    ("command", "strategy", "name"),
    [
        ("select", "coverage", "sample"),
        ("select", "accuacl+uniform", "share"),
        ("run", "coverage", "sample"),
        ("run", "accuacl+uniform", "share"),
        ("project", "coverage", "sample"),
    ],
)
def test_an_option_that_is_given_twice_is_refused_in_one_sentence(tmp_path, command, strategy, name):
    write(tmp_path / "pool.parquet", np.arange(30), Features(np.eye(30, 4), np.full((30, 2), 0.5)))
    (tmp_path / "texts.txt").write_text("one\ntwo")
    words = {
        "select": ("select", "--pool=pool.parquet", "--budget=1", "--out=picked.csv"),
        "run": ("run", "--out", "a"),
        "project": ("project", "new", "a", "--texts=texts.txt"),
    }[command]
    before = set(tmp_path.iterdir())
    ended = accuacl(*words, "--strategy", strategy, "--option", f"{name}=1", f"--{name}=1", cwd=tmp_path)
    says = f"accuacl: {name} is given by --option and by --{name}; give one of them.\n"
    assert (ended.returncode, ended.stderr) == (2, says)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("strategy", ["accuacl+uniform", "mine"])
@pytest.mark.parametrize("written", ["share: 0.3", "options: {share: 0.3}", "options.share: 0.3"])
@pytest.mark.parametrize("given", [["--share=0.4"], ["--option", "share=0.4"]])
def test_what_is_given_overrides_the_file_however_either_spells_it(tmp_path, written, given, strategy):
    (tmp_path / "a.yaml").write_text(f"strategy: {strategy}\nseed: 3\n{written}\n")
    with forgetting():
        REGISTRY["mine"] = lambda query, *, share=0.5: None
        shown = accuacl("run", "--config=a.yaml", *given, "--print-config", cwd=tmp_path)
        settings = make(yaml.safe_load(shown.stdout))
        assert options_for(settings.model_dump(), strategy) == {"share": 0.4}
    assert settings.seed == 3


def test_no_two_strategies_mean_different_things_by_an_option():
    declared = [option for strategy in BUILT_IN for option in options_of(strategy).values()]
    said = {(option.name, option.help, option.kind, option.least, option.most) for option in declared}
    assert len(said) == len({option.name for option in declared})


def test_an_option_without_a_flag_is_named(tmp_path):
    (tmp_path / "texts.txt").write_text("one\ntwo")
    ended = accuacl("project", "new", "p", "--texts", "texts.txt", "--share", "0.5", cwd=tmp_path)
    says = "accuacl: there is no option --share; give --option share=VALUE (see accuacl project new --help).\n"
    assert (ended.returncode, ended.stderr) == (2, says)
    assert not (tmp_path / "p").exists()


def test_help_promises_no_default_that_depends_on_the_strategy():
    run = load("accuacl.cli.run", "run")
    told = {each.name: getattr(each, "help", "") for each in run.get_params(typer.Context(run))}
    assert "[default" not in told["keep"] + told["oversample"]
    assert "[default: released]" in told["variant"]


def test_a_registered_strategy_is_read_again_when_it_changes():
    with forgetting():
        REGISTRY["mine"] = lambda query, *, a=1: None
        assert list(options_of("mine")) == ["a"]
        REGISTRY["mine"] = lambda query, *, b=1: None
        assert list(options_of("mine")) == ["b"]
