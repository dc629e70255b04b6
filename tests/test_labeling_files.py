"""Files of any kind, seen through the user's function: tried with sounds."""

from __future__ import annotations

import json
import wave

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.labeling.project import Project, export, loader, make, open_for_embedding, read_files, relocate_data
from commands import accuacl
from scripted import answer

SOUND = """
import wave

import numpy as np


def spectrum(path):
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    power = np.abs(np.fft.rfft(samples, 1024)) + 1
    return np.log([band.sum() for band in np.array_split(power, 16)])

def wrong(path):
    raise RuntimeError("a bug")

def several(path):
    return np.ones((2, 3))

def of_other_lengths(path):
    return np.ones(3 + ("1" in path.name))

nothing = 7
"""


def tone(path, frequency):
    samples = 8000 * np.sin(2 * np.pi * frequency * np.arange(2000) / 8000)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(samples.astype(np.int16).tobytes())


@pytest.fixture
def sounds(tmp_path):
    """Twenty low and high tones, one of them damaged."""
    rng, folder = np.random.default_rng(0), tmp_path / "sounds"
    (folder / "low").mkdir(parents=True)
    (folder / "high").mkdir()
    for i in range(10):
        tone(folder / "low" / f"{i}.wav", rng.uniform(200, 600))
        tone(folder / "high" / f"{i}.wav", rng.uniform(2000, 3500))
    (folder / "low" / "3.wav").write_bytes(b"RIFF")
    (folder / ".hidden").write_bytes(b"x")
    (tmp_path / "sound.py").write_text(SOUND)
    return folder


def settings(folder, function="spectrum", **more):
    small = {"kind": "files", "per_round": 8, "rounds": 1, "holdout": 0.25}
    return make(small | more | {"model": f"{folder / 'sound.py'}:{function}"})


def test_sounds_are_labelled_learned_and_predicted(sounds, tmp_path):
    with Project.create(tmp_path / "p", settings(tmp_path)) as project:
        project.store.add_person("Ada")
        task = project.add(read_files(sounds))
        assert task.count == 20
        while not project.advance().finished:
            answer(project, name=lambda project, item: project.item(item).name.split("/")[0])
        made = json.loads((project.tasks.folder_of(0) / "inputs.json").read_text())
        assert [project.item(row).name for row in made["bad"]] == ["low/3.wav"]
        item = project.item(0)
        assert (item.kind, item.fields, item.path) == ("file", (("file", "high/0.wav"),), sounds / "high" / "0.wav")
        written = export(project, tmp_path / "e", None, "text", ignore)
        assert tmp_path / "e" / "own_model.py" in written
    model = loader.load(tmp_path / "e")
    tone(tmp_path / "new.wav", 411)
    tone(tmp_path / "other.wav", 2777)
    assert model.predict([tmp_path / "new.wav", str(tmp_path / "other.wav")])[0] == ["low", "high"]


def test_files_of_earlier_tasks_are_left_out_and_moved_ones_are_found(sounds, tmp_path):
    with Project.create(tmp_path / "p", settings(tmp_path)) as project:
        project.add(read_files(sounds / "low"))
        with pytest.raises(InputError, match="has nothing new to label"):
            project.add(read_files(sounds / "low"))
        (sounds / "low").rename(tmp_path / "moved")
        (moved,) = relocate_data(project.tasks, sounds / "low", tmp_path / "moved")
        assert moved.missing == []
        project.advance()
        assert (project.tasks.folder_of(0) / "inputs.npy").exists()


def test_a_file_that_is_gone_is_not_given_out(sounds, tmp_path):
    with Project.create(tmp_path / "p", settings(tmp_path)) as project:
        project.add(read_files(sounds))
        for file in [*(sounds / "high").iterdir(), *(sounds / "low").glob("[4-9].wav")]:
            file.unlink()
        project.give_out_first()
        assert {project.item(pick.item).name for pick in project.store.picks(0, 0)} <= {
            f"low/{i}.wav" for i in range(4)
        }


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("several", r"several gave float64 of shape \(2, 3\) for 0.wav; give a vector of finite numbers"),
        (
            "of_other_lengths",
            r"of_other_lengths gave 4 numbers for 1.wav and 3 for others; give vectors of one length",
        ),
    ],
)
def test_what_the_function_gives_is_checked(sounds, tmp_path, function, says):
    with Project.create(tmp_path / "p", settings(tmp_path, function)) as project:
        project.add(read_files(sounds))
        with pytest.raises(InputError, match=says):
            project.advance()


def test_a_function_that_always_fails_shows_its_error(sounds, tmp_path):
    with Project.create(tmp_path / "p", settings(tmp_path, "wrong")) as project:
        project.add(read_files(sounds))
        with pytest.raises(RuntimeError, match="a bug"):
            project.advance()


def test_files_that_are_all_broken(sounds, tmp_path):
    for file in (sounds / "low").glob("[4-9].wav"):
        file.unlink()
    for file in (sounds / "low").glob("*.wav"):
        file.write_bytes(b"x")
    with Project.create(tmp_path / "p", settings(tmp_path)) as project:
        project.add(read_files(sounds / "low"))
        with pytest.raises(InputError, match="spectrum could read none of the 4 files in"):
            project.advance()


@pytest.mark.parametrize("function", ["nothing", "missing"])
def test_a_function_that_is_none(sounds, tmp_path, function):
    with pytest.raises(InputError, match=f"has no function {function} that takes the path of a file"):
        Project.create(tmp_path / "p", settings(tmp_path, function))


def test_files_need_a_function(tmp_path):
    with pytest.raises(InputError, match=r"files need your own --model FILE\.py:FUNCTION"):
        make({"kind": "files"})


@pytest.mark.posix
def test_links_that_lead_out_and_empty_folders_are_refused(sounds, tmp_path):
    (tmp_path / "secret").write_text("x")
    (sounds / "low" / "out.wav").symlink_to(tmp_path / "secret")
    items = read_files(sounds / "low")
    assert len(items.names) == 10
    assert list(items.bad) == ["out.wav"]
    (tmp_path / "empty").mkdir()
    with Project.create(tmp_path / "p", settings(tmp_path)) as project:
        with pytest.raises(InputError, match="has no files; give a folder that has some"):
            project.add(read_files(tmp_path / "empty"))
        with pytest.raises(InputError, match="embed cannot use a project of files"):
            open_for_embedding(tmp_path / "p", str(sounds), None)


def test_the_command(sounds, tmp_path):
    model = f"{tmp_path / 'sound.py'}:spectrum"
    ended = accuacl("project", "new", tmp_path / "p", "--files", sounds, "--model", model, "--classes", "low,high")
    assert ended.returncode == 0, ended.stderr
    assert "20 files" in ended.stdout
    ended = accuacl("project", "new", tmp_path / "q", "--files", sounds)
    assert ended.returncode == 2
    assert "files need your own --model" in " ".join(ended.stderr.split())
