"""Every answer ever given can be found and changed, many at once."""

from __future__ import annotations

import csv
from dataclasses import replace
from urllib.parse import quote

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.project.exported_tables import write_answers
from accuacl.labeling.store import Reviewed
from accuacl.labeling.web.review import SORT, Opinion, Wanted, matches
from web_project import browse, log_in

PER_ROUND = 6
PROJECT = {"per_round": PER_ROUND}


@pytest.fixture
def client(client):
    """Ada, who has labelled three of six, skipped one, and leaves two."""
    view = client.post("/api/next", json={}).json()
    for i in range(4):
        answer = {"item": view["pick"]["item"], "class_id": i % 2, "request": f"review-{i}-0000"}
        view = client.post("/api/skip" if i == 3 else "/api/label", json=answer).json()
    return client


def items(page):
    return [int(part.split('"')[0]) for part in page.split('name="item" value="')[1:]]


def found(client, query):
    return set(items(client.get(f"/review?{query}").text))


def test_all_of_them_are_there_and_each_filter_finds_its_own(client, project):
    picks = [pick.item for pick in project.store.picks(0, 0)]
    assert found(client, "") == set(picks)
    assert found(client, "show=labelled") == set(picks[:3])
    assert found(client, "show=skipped") == {picks[3]}
    assert found(client, "show=open") == set(picks[4:])
    assert found(client, "label=1") == {picks[1]}
    assert found(client, "task=0&round=0&show=labelled&person=0") == set(picks[:3])
    assert found(client, "task=1") == found(client, "person=7") == found(client, "held=1") == set()


def test_many_are_relabelled_unskipped_and_commented_at_once(client, project):
    picks = [pick.item for pick in project.store.picks(0, 0)]
    before = project.store.labels()
    said = {"items": [picks[0], picks[3]], "class_id": 1, "request": "relabel-0001"}
    assert client.post("/api/relabel", json=said).json() == {"changed": 2}
    assert client.post("/api/relabel", json=said).json() == {"changed": 0}  # sent again
    assert project.store.labels() == before | {picks[0]: 1, picks[3]: 1}
    assert sum(event.kind == "correct" for event in project.store.history(picks[3])) == 1
    text = "is this\na <b>dog</b>?"
    said = {"items": picks[:2], "text": text, "request": "comment-0001"}
    assert [client.post("/api/comment", json=said).status_code for _ in range(2)] == [200, 200]
    assert found(client, "show=commented") == set(picks[:2])
    assert client.get("/review?show=commented").text.count("&lt;b&gt;dog&lt;/b&gt;") == 2
    assert "wrote:" in client.get(f"/item/{picks[0]}").text
    refused = {"items": [picks[5]], "class_id": 1, "request": "relabel-0002"}
    answer = client.post("/api/relabel", json=refused)  # it has not been labelled yet
    assert answer.status_code == 409
    assert "is still to be labelled in this round" in answer.json()["detail"]
    for wrong in ([], [10**9], picks[:1] * 501):
        assert client.post("/api/relabel", json=refused | {"items": wrong}).status_code in (409, 422)
    answer = client.post("/api/relabel", json=said | {"class_id": 0})
    assert "was already used for something else" in answer.json()["detail"]


def test_people_disagree_when_they_gave_different_labels(client, project):
    picks = [pick.item for pick in project.store.picks(0, 0)]
    bob = project.store.person_of(project.store.add_person("Bob"))
    project.store.relabel(bob, [picks[2]], 1, "relabel-by-bob")
    assert found(client, "show=people") == {picks[2]}
    project.store.relabel(bob, [picks[2]], 0, "relabel-by-bob-2")
    assert found(client, "show=people") == set()


def test_the_model_disagrees_with_what_is_labelled_otherwise():
    def opinion(label, guess):
        return Opinion(Reviewed(0, 0, 0, label, True, 0, 0.0, guess, (), False), guess, False)

    wanted = Wanted(show="model")
    verdicts = [matches(opinion(*pair), wanted) for pair in ((1, 0), (1, 1), (None, 0), (1, None))]
    assert verdicts == [True, False, False, False]
    assert matches(opinion(1, 0), Wanted(label="1", guess="0"))
    assert not matches(opinion(1, 0), Wanted(label="1", guess="0", held="1"))


def test_pages_of_many(client, project, monkeypatch):
    monkeypatch.setattr("accuacl.labeling.web.review.SHEET", 4)
    first, second = (client.get(f"/review?page={page}").text for page in (1, 2))
    assert len(items(first)) == 4
    assert set(items(first)) | set(items(second)) == {pick.item for pick in project.store.picks(0, 0)}
    assert 'href="/review?page=2"' in first
    assert "5 to 6 of 6" in second
    assert client.get("/review?page=99").text.count('name="item"') == 2
    assert client.get("/review?show=nonsense").status_code == 422


@pytest.mark.parametrize("text", ["", "   ", "x" * 1001, "a\x00b", "a\u202eb"])
def test_comments_are_checked(client, project, text):
    ada = project.store.people()[0]
    with pytest.raises(InputError, match="a comment has 1 to 1000 printable characters"):
        project.store.comment(ada, [project.store.picks(0, 0)[0].item], text, "a-comment")


def test_gold_is_marked_by_leads_alone_and_what_differs_is_to_settle(client, project):
    picks = [pick.item for pick in project.store.picks(0, 0)]
    assert client.post("/api/gold", json={"items": picks[:2], "gold": True}).json() == {"changed": 2}
    assert found(client, "show=gold") == set(picks[:2])
    assert client.get("/review").text.count('id="gold"') == 1
    with browse(client.base_url) as other:
        log_in(other, project, "Cleo")
        answer = other.post("/api/gold", json={"items": picks[:2], "gold": False})
        assert (answer.status_code, answer.json()["detail"]) == (403, "Only a lead of the project may do this.")
        assert 'id="gold"' not in other.get("/review").text
    cleo = next(person for person in project.store.people() if person.name == "Cleo")
    label = project.store.labels()[picks[1]]
    project.store.label(cleo, picks[1], 1 - label, "cleo-disagrees")  # a gold item may be asked of everybody
    assert found(client, "show=settle") == {picks[1]}
    page = client.get("/review").text
    assert "1 example has labels of several people: they agree in 0 %, Fleiss&#39; kappa -1.00" in page
    assert "; 1 to settle." in page
    assert "was asked too, and labelled it: " in client.get(f"/item/{picks[1]}").text
    said = client.get("/people").text
    assert '<th scope="row">Ada and Cleo</th><td>1</td><td>0 %</td><td>0.00 (0.00 to 0.79)</td>' in said
    assert "100 (34 to 100) %" not in said  # that Ada's own labels are right as she has marked them says nothing
    assert '<th scope="row">Cleo</th><td>1</td><td>0 (0 to 79) %</td>' in said
    to_do = "People disagree about 1 example."
    assert f"{to_do}</b>" in client.get("/dashboard").text
    assert 'href="/settle"' in client.get("/dashboard").text
    client.post("/api/relabel", json={"items": picks[1:2], "class_id": label, "request": "settled-now"})
    assert found(client, "show=settle") == set()
    assert to_do not in client.get("/dashboard").text  # there is nothing left to do
    assert client.post("/api/gold", json={"items": picks[:2], "gold": False}).status_code == 200
    assert found(client, "show=gold") == set()


def test_likely_mistakes_come_in_their_order(client, project, monkeypatch):
    picks = [pick.item for pick in project.store.picks(0, 0)]
    doubts = {picks[2]: (0.9, 1), picks[0]: (0.4, 0), picks[1]: (0.2, 0)}
    asked = []
    monkeypatch.setattr("accuacl.labeling.web.review.likely_mistakes", lambda project: asked.append(1) or doubts)
    for _ in range(2):
        page = client.get("/review?show=mistakes").text
        assert items(page) == [picks[2], picks[0], picks[1]]
    assert page.count("probably ") == 3
    assert len(asked) == 1  # kept until a label changes


def test_words_are_found_in_names_and_comments(client, project):
    picks = [pick.item for pick in project.store.picks(0, 0)]
    name = project.item(picks[0]).name
    client.post("/api/comment", json={"items": picks[1:3], "text": "Too DARK to tell", "request": "comment-dark"})
    assert found(client, f"q={name[:-4]}") == {picks[0]}
    assert found(client, "q=tell+dark") == set(picks[1:3])  # in any order and case
    assert found(client, "q=dark+light") == set()
    assert found(client, "q=dark&label=1") == {picks[1]}
    assert client.get(f"/review?q={'x' * 201}").status_code == 422


def test_the_order_is_that_of_time_confidence_or_disagreement():
    def opinion(item, time, confidence, label=0, guess=0, disagreement=0.0, unsettled=False):
        row = Reviewed(item, 0, 0, label, True, 0, time, guess, (), disagreement > 0)
        row = replace(row, confidence=confidence, disagreement=disagreement, unsettled=unsettled)
        return Opinion(row, guess, False)

    every = [
        opinion(0, 3.0, 0.9),
        opinion(1, 1.0, 0.2, disagreement=0.5),
        opinion(2, 2.0, None, disagreement=0.5, unsettled=True),
        opinion(3, 4.0, 0.8, guess=1),
    ]

    def order(sort):
        return [one.row.item for one in sorted(every, key=SORT[sort][1])]

    assert order("new") == [0, 1, 2, 3]  # as they come
    assert order("old") == [1, 2, 0, 3]
    assert order("unsure") == [1, 3, 0, 2]
    assert order("sure") == [0, 3, 1, 2]
    assert order("disagree") == [2, 1, 3, 0]


def test_why_something_was_skipped_is_shown_found_and_exported(client, project, tmp_path):
    view = client.post("/api/next", json={}).json()
    item, why = view["pick"]["item"], "none of <b>the</b> classes"
    said = {"item": item, "reason": why, "request": "skipped-why-1"}
    assert [client.post("/api/skip", json=said).status_code for _ in range(2)] == [200, 200]
    assert found(client, "reason=" + quote(why)) == found(client, "q=none+classes") == {item}
    assert "skipped: none of &lt;b&gt;the&lt;/b&gt; classes" in client.get("/review?show=skipped").text
    assert "skipped it: none of" in client.get(f"/item/{item}").text
    write_answers(project, tmp_path)
    for name in ("skipped.csv", "answers.csv"):
        with (tmp_path / name).open() as file:
            assert [row["reason"] for row in csv.DictReader(file) if row["item"] == str(item)] == [why]
    long = client.post("/api/skip", json=said | {"reason": "x" * 1001, "request": "skipped-why-2"})
    assert (long.status_code, "a reason has 0 to 1000" in long.json()["detail"].lower()) == (409, True)
    client.post("/api/undo", json={"request": "undo-the-skip"}).raise_for_status()
    assert found(client, "reason=" + quote(why)) == set()


def test_an_example_is_told_whole_to_who_may_see_it(client, project):
    item = project.store.picks(0, 0)[0].item
    told = client.get(f"/api/review/{item}").json()
    assert (told["image"], told["label"], told["person"]) == (f"/item/{item}/image", "cat", "Ada")
    assert client.get("/api/review/99999").status_code == 404
    project.store.mark_gold(project.store.people()[0], [item])
    with browse(client.base_url) as other:
        log_in(other, project, "Cleo")  # who is still to be asked about it
        assert other.get(f"/api/review/{item}").status_code == 404
