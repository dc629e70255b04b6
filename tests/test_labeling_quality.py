"""How good labels are: kappa by its definitions, gold items, and likely mistakes."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import cohen_kappa_score

from accuacl.base.errors import InputError
from accuacl.experiments import read_steps
from accuacl.experiments.heads import fit_ridge as fit
from accuacl.labeling.project import add_gold, likely_mistakes, measure_quality, unlearned_guesses
from accuacl.labeling.project.estimates import share
from accuacl.labeling.project.quality import cohen, doubtful, fleiss
from accuacl.labeling.project.rounds import asked_twice
from commands import accuacl
from effort import times
from scripted import answer, blobs, class_of, finish, new_project, texts_project, truth


@pytest.mark.parametrize("seed", range(20))
def test_cohens_kappa_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(2, 60)), int(rng.integers(2, 6))
    a = rng.integers(classes, size=n)
    b = np.where(rng.random(n) < 0.6, a, rng.integers(classes, size=n))
    kappa, expected = cohen(a.tolist(), b.tolist()), cohen_kappa_score(a, b)
    if kappa is None:
        assert len(set(a) | set(b)) == 1
        return
    assert kappa.value == pytest.approx(expected, abs=1e-12)
    assert -1 <= kappa.low <= kappa.value <= kappa.high <= 1
    assert kappa.agreement == pytest.approx(100 * (a == b).mean())


def test_fleiss_kappa_is_that_of_his_paper():
    """Table 1 of Fleiss (1971): 30 people, of whom 6 have judged each of 30; there kappa is 0.430."""
    text = """0 0 0 6 0/0 3 0 0 3/0 1 4 0 1/0 0 0 0 6/0 3 0 3 0/2 0 4 0 0/0 0 4 0 2/2 0 3 1 0/2 0 0 4 0/0 0 0 0 6
    1 0 0 5 0/1 1 0 4 0/0 3 3 0 0/1 0 0 5 0/0 2 0 3 1/0 0 5 0 1/3 0 0 1 2/5 1 0 0 0/0 2 0 4 0/1 0 2 0 3
    0 0 0 0 6/0 1 0 5 0/0 2 0 1 3/2 0 0 4 0/1 0 0 4 1/0 5 0 1 0/4 0 0 0 2/0 2 0 4 0/1 0 5 0 0/0 0 0 0 6"""
    counts = [[int(n) for n in row.split()] for row in text.replace("\n", "/").split("/")]
    assert {sum(row) for row in counts} == {6}
    kappa = fleiss([[label for label, n in enumerate(row) for _ in range(n)] for row in counts])
    assert kappa.value == pytest.approx(0.430, abs=5e-4)
    assert kappa.count == 30


@pytest.mark.parametrize("seed", range(10))
def test_fleiss_kappa_is_its_definition(seed):
    """In exact fractions: the share of pairs of labels of an item that agree, and of pairs drawn from all labels."""
    rng = np.random.default_rng(seed)
    items = [rng.integers(3, size=rng.integers(2, 5)).tolist() for _ in range(rng.integers(2, 12))]
    agreed = [
        Fraction(sum(a == b for a, b in combinations(labels, 2)), len(labels) * (len(labels) - 1) // 2)
        for labels in items
    ]
    seen = sum(agreed) / len(items)
    every = [label for labels in items for label in labels]
    chance = Fraction(sum(a == b for a in every for b in every), len(every) ** 2)
    kappa = fleiss(items)
    assert kappa.value == pytest.approx(float((seen - chance) / (1 - chance)), abs=1e-12)


def test_kappa_without_items_or_where_chance_agrees():
    assert cohen([], []) is fleiss([]) is None
    assert cohen([1, 1], [1, 1]) is fleiss([[1, 1], [1, 1]]) is None
    complete = cohen([0, 1, 0, 1], [0, 1, 0, 1])
    assert (complete.value, complete.high) == (1.0, 1.0)
    assert complete.low < 0.1  # four items prove little
    opposite = cohen([0, 1, 0, 1], [1, 0, 1, 0])
    assert (opposite.value, opposite.low) == (-1.0, -1.0)


def test_the_interval_of_kappa_holds_in_nineteen_of_twenty():
    rng, inside, tries = np.random.default_rng(0), 0, times(400, 4000)
    for _ in range(tries):
        a = rng.integers(3, size=60)
        b = np.where(rng.random(60) < 0.7, a, rng.integers(3, size=60))  # kappa is 0.7
        kappa = cohen(a.tolist(), b.tolist())
        inside += kappa.low <= 0.7 <= kappa.high
    assert 0.92 <= inside / tries <= 0.98


def test_which_items_two_people_label_depends_on_the_seed_alone():
    items = list(range(50))
    chosen = asked_twice(items, 0.1, 0)
    assert len(chosen) == 5
    assert asked_twice(items[::-1], 0.1, 0) == chosen != asked_twice(items, 0.1, 1)
    assert asked_twice(items, 0.0, 0) == asked_twice([], 0.5, 0) == set()
    assert asked_twice(items, 1.0, 0) == set(items)


@pytest.mark.parametrize("later", [False, True], ids=["made with it", "served with it"])
def test_a_share_of_each_round_is_labelled_by_two(tmp_path, later):
    with new_project(tmp_path / "p", **({} if later else {"overlap": 0.25})) as project:
        if later:
            project.overlap = 0.25
        project.advance()
        (ada,), bob = project.store.people(), project.store.person_of(project.store.add_person("Bob"))
        counts = {}
        project.store.lease(bob)
        for person in (ada, bob, ada):
            while (pick := project.store.lease(person)) is not None:
                label = class_of(project, truth(project, pick.item))
                project.store.label(person, pick.item, label, uuid.uuid4().hex)
                counts[person.name] = counts.get(person.name, 0) + 1
            if len(counts) == 1:
                assert project.state().waiting == "labels"
        assert sum(counts.values()) == 8 + 2
        assert project.state().ready
        found = measure_quality(project.store)
        assert (found.shared, found.unsettled) == (2, 0)
        assert found.text.startswith("2 examples have labels of several people: ")
        assert project.advance().round == 1


def test_agreement_and_gold_of_each_person(tmp_path):
    with new_project(tmp_path / "p", overlap=1.0) as project:
        project.advance()
        store = project.store
        (ada,), bob = store.people(), store.person_of(store.add_person("Bob"))
        for name in ("cat", "dog"):
            store.add_class(name)
        said = {ada: [0, 0, 0, 0, 1, 1, 1, 1], bob: [0, 0, 0, 1, 1, 1, 1, 1]}
        items = [pick.item for pick in store.picks(0, 0)]
        for person, labels in said.items():
            for item, label in zip(items, labels, strict=True):
                store.label(person, item, label, uuid.uuid4().hex)
        found = measure_quality(store)
        assert found.pairs == {(ada.id, bob.id): cohen(said[ada], said[bob])}
        assert found.fleiss == fleiss(list(zip(said[ada], said[bob], strict=True)))
        assert (found.shared, found.unsettled, found.gold) == (8, 1, {})
        said_of_all = f"they agree in 88 %, Fleiss' kappa {found.fleiss.text}; 1 to settle."
        assert found.text == f"8 examples have labels of several people: {said_of_all}"
        store.mark_gold(ada, items[:5])  # as she has labelled them herself, which says nothing of her
        assert measure_quality(store).gold == {bob.id: share(4, 5)}
        store.mark_gold(bob, items[:2])
        assert measure_quality(store).gold == {bob.id: share(2, 3)}  # of the others; nor of whoever marks them
        store.set_gold(dict.fromkeys(items[:5], 1))  # from elsewhere, so that nobody knew it
        assert measure_quality(store).gold == {ada.id: share(1, 5), bob.id: share(2, 5)}
        store.correct(bob, items[3], 1, uuid.uuid4().hex)  # settled; what they said by themselves stays
        assert measure_quality(store).unsettled == 0
        assert measure_quality(store).fleiss == found.fleiss


def test_gold_items_come_from_a_file(tmp_path):
    file = tmp_path / "gold.csv"
    with new_project(tmp_path / "p") as project:
        project.advance()
        answer(project, 2)
        class_of(project, "class 0"), class_of(project, "class 1")
        item = min(project.store.labels())
        names = [c.name for c in project.store.classes()]
        other = next(i for i in range(40) if i not in project.store.labels())
        file.write_text(f"name,class\n{project.item(item).name},{names[0]}\n{project.item(other).name}, {names[1]} \n")
        assert add_gold(project, file) == (2, 1)
        assert project.store.gold() == {item: 0, other: 1}
        for text, said in (
            ("name,kind\n", r"has the columns name, kind; give .* and `class` \(or `label`\)\."),
            ("name,class\n", "has no rows"),
            (f"name,class\nnobody,{names[0]}\n", "there is no item 'nobody'"),
            (f"item,class\n{item},unicorn\n", r"line 2: there is no class 'unicorn'; fix it, or add it on the page\."),
        ):
            file.write_text(text)
            with pytest.raises(InputError, match=said):
                add_gold(project, file)
        file.write_bytes(b"name,class\n\xff,\xfe\n")
        with pytest.raises(InputError, match="is not text in UTF-8"):
            add_gold(project, file)
        assert project.store.gold() == {item: 0, other: 1}


def test_gold_items_come_from_every_kind_of_table(tmp_path):
    """Those that `project label` takes."""
    rows = [{"id": "t0-4", "label": "class 0"}, {"id": "t0-7", "label": "class 1"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "g.parquet")
    (tmp_path / "g.json").write_text(json.dumps(rows))
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "g.csv").write_text("id;label\nt0-4;class 0\nt0-7;class 1\n")
    (tmp_path / "g.tsv").write_text("item\tclass\n4\tclass 0\n7\tclass 1\n")
    for file in ("g.parquet", "g.json", "g.jsonl", "g.csv", "g.tsv"):
        with new_project(tmp_path / file[2:]) as project:
            class_of(project, "class 0"), class_of(project, "class 1")
            assert add_gold(project, tmp_path / file) == (2, 0)
            assert project.store.gold() == {4: 0, 7: 1}
    with texts_project(tmp_path) as project:
        names = {c.name: c.id for c in project.store.classes()}
        (tmp_path / "g.csv").write_text("text,class\nclose it 2,close\n")
        assert add_gold(project, tmp_path / "g.csv")[0] == 1
        assert project.store.gold() == {5: names["close"]}


def test_gold_items_of_one_name_are_told_apart(tmp_path):
    """As in an export: numbers in `item`, names in `name`, the task in `task`."""
    file = tmp_path / "gold.csv"
    with new_project(tmp_path / "p") as project:
        for task in (1, 2):  # three tasks, two of which have the name 9
            project.add(replace(blobs(task)[0], names=[str(i) for i in range(60)]))
        class_of(project, "class 0")
        file.write_text("name,class,item,task\n9,class 0,69,\n9,class 0,,3\nt0-4,class 0,,\n,class 0,5,\n")
        assert add_gold(project, file) == (4, 0)
        assert set(project.store.gold()) == {69, 129, 4, 5}
        for row, said in (
            ("9,class 0,,", "line 2: 2 items are called '9'; say which with a column `task` or `item`"),
            ("9,class 0,70,", "line 2: item 70 is called '10', not '9'; fix one of them"),
            (",class 0,180,", "line 2: there is no item '180' in this project; fix it"),
        ):
            file.write_text(f"name,class,item,task\n{row}\n")
            with pytest.raises(InputError, match=said):
                add_gold(project, file)


def test_doubt_follows_its_definition():
    """Against plain loops over all examples and classes."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        n, k = int(rng.integers(1, 30)), int(rng.integers(1, 5))
        p, labels = rng.dirichlet(np.ones(k), n), rng.integers(k, size=n)
        p[rng.random(n) < 0.1] = np.nan
        expected = []
        for i in range(n):
            if np.isnan(p[i]).any():
                continue
            candidates = []
            for j in range(k):
                own = [p[m, j] for m in range(n) if labels[m] == j and not np.isnan(p[m]).any()]
                if j != labels[i] and own and p[i, j] >= np.mean(own) and p[i, j] > p[i, labels[i]]:
                    candidates.append((p[i, j], j))
            if candidates:
                best, j = max(candidates)
                expected.append((i, pytest.approx(best - p[i, labels[i]]), j))
        assert doubtful(p, labels) == expected


def test_wrong_labels_are_found_and_the_most_doubtful_comes_first(tmp_path):
    with new_project(tmp_path / "p", per_round=16, rounds=1) as project:
        finish(project)
        assert likely_mistakes(project) == {}
        items = sorted(project.store.labels())
        ada = project.store.people()[0]
        wrong = items[3]
        right = project.store.labels()[wrong]
        other = next(label for label in set(project.store.labels().values()) if label != right)
        project.store.correct(ada, wrong, other, uuid.uuid4().hex)
        found = likely_mistakes(project)
        assert next(iter(found)) == wrong
        assert found[wrong][1] == right
        doubts = [doubt for doubt, _ in found.values()]
        assert doubts == sorted(doubts, reverse=True)
        # The same from scratch: a head fitted without this example gives it the probabilities that it was judged by.
        from accuacl.labeling.project.learned import rows_of

        rows = torch.from_numpy(rows_of(project.settings, project.tasks, items))
        labels = torch.tensor([project.store.labels()[item] for item in items])
        head = fit(rows, labels, int(labels.max()) + 1)
        p = torch.softmax(head.loo, 1)[3]
        assert found[wrong][0] == pytest.approx(float(p[right] - p[other]))


def test_what_the_model_would_say_had_it_not_learned_from_an_item(tmp_path):
    """Held-out items: what it said after the last training. The others: a head that was fitted without each of them."""
    with new_project(tmp_path / "p", per_round=16, rounds=1, holdout=0.3) as project:
        assert unlearned_guesses(project) == {}
        finish(project)
        found, labels = unlearned_guesses(project), project.store.labels()
        tests = [step.result["predictions"] for step in read_steps(project.journal, "test")]
        held = {item: (guess, confidence) for item, guess, confidence in tests[-1]}
        assert held
        assert found.keys() == labels.keys()
        assert {item: found[item] for item in held} == held
        from accuacl.labeling.project.learned import rows_of

        items = sorted(labels)
        rows = torch.from_numpy(rows_of(project.settings, project.tasks, items))
        p = torch.softmax(fit(rows, torch.tensor([labels[item] for item in items]), 2).loo, 1)
        for i, item in enumerate(items):
            if item not in held:
                assert found[item] == (int(p[i].argmax()), pytest.approx(float(p[i].max())))


def test_without_embeddings_what_the_model_said_before_is_used(tmp_path, monkeypatch):
    with new_project(tmp_path / "p", head="linear") as project:
        finish(project)
        monkeypatch.setattr(type(project.settings), "frozen", property(lambda self: False))
        ada, labels = project.store.people()[0], project.store.labels()
        assert likely_mistakes(project) == {}
        guessed = {p.item: (p.guess, p.confidence) for p in project.store.picks(0, 1) if p.guess == labels[p.item]}
        surest = max(guessed, key=lambda item: guessed[item][1])
        guess, confidence = guessed[surest]
        project.store.correct(ada, surest, 1 - guess, uuid.uuid4().hex)
        others = [c for item, (g, c) in guessed.items() if g == guess and item != surest]
        assert likely_mistakes(project) == ({surest: (confidence, guess)} if others else {})


def test_nothing_is_doubted_before_there_is_a_model(tmp_path):
    with new_project(tmp_path / "p") as project:
        assert likely_mistakes(project) == {}
        project.advance()
        answer(project, 3)
        assert likely_mistakes(project) == {}


def test_the_commands_name_gold_items_and_show_how_well_people_agree(tmp_path):
    """Names are shown as they are, whatever marks they have, and shortened in columns."""
    with new_project(tmp_path / "p", overlap=1.0) as project:
        project.advance()
        store = project.store
        (ada,), bob = store.people(), store.person_of(store.add_person("[red]Bob"))
        cleo = store.person_of(store.add_person("Cleo"))
        for i in range(13):
            store.add_class(f"[bold]class {i}" if i else "a class with a very long name")
        items = [pick.item for pick in store.picks(0, 0)]
        for i, item in enumerate(items):
            for person in (ada, (bob, cleo)[i % 2]):  # two pairs of people
                store.label(person, item, i // 2 + (person is bob and i == 0), uuid.uuid4().hex)
        (tmp_path / "gold.csv").write_text(
            "item,class\n" + "".join(f"{i},a class with a very long name\n" for i in items)
        )
    gold = accuacl("project", "gold", tmp_path / "p", tmp_path / "gold.csv")
    assert (gold.returncode, gold.stderr) == (0, "")
    assert gold.stdout == "8 gold items, of which 8 are labelled so far; 8 in all\n"
    status = accuacl("project", "status", tmp_path / "p")
    assert (status.returncode, status.stderr) == (0, "")
    lines = status.stdout.splitlines()
    assert "labels by class (8 labels, 13 names):" in lines
    assert any("2 a class with a very lon…" in line for line in lines)
    assert any("2 [bold]class 1" in line for line in lines)
    assert any(line.startswith("8 examples have labels of several people: they agree in 88 %") for line in lines)
    kappas = [line for line in lines if "Cohen's kappa" in line]
    assert [line.partition(":")[0].strip() for line in kappas] == ["Ada and [red]Bob", "Ada and Cleo"]
    assert kappas[1].endswith(f"Cohen's kappa {cohen(range(4), range(4)).text} on 4")
    assert [line.partition(" %")[0] for line in lines if line.startswith("gold items")] == [
        f"gold items: {name} {share}"
        for name, share in (("Ada", "25 (7 to 59)"), ("[red]Bob", "0 (0 to 49)"), ("Cleo", "25 (5 to 70)"))
    ]
