"""`run --log-to`: curves from the journal, each event once, however often the run is resumed."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from accuacl.experiments import logs, make, run

SETTINGS = {"labels": 8, "rounds": 2, "epochs": 1, "tasks": 2, "strategy": "entropy", "evaluate": "round"}


class Fake:
    """In place of TensorBoard's writer: a file of lines."""

    def __init__(self, folder, filename_suffix):
        self.path = logs.Path(folder) / f"events.out.tfevents.1{filename_suffix}"
        self.file = self.path.open("a")

    def add_scalar(self, tag, value, step):
        self.file.write(f"{tag}|{value}|{step}\n")

    def add_text(self, tag, text, step):
        self.file.write(f"{tag}||{step}\n")

    def flush(self):
        self.file.flush()

    def close(self):
        self.file.close()


def lines(folder):
    return [line for path in sorted(folder.glob("*/events*")) for line in path.read_text().splitlines()]


def test_every_event_is_written_once_also_by_a_run_that_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "_summary_writer", lambda: Fake)
    config = make(SETTINGS)
    result = run(config, tmp_path / "a" / "whole", log_to=f"tensorboard:{tmp_path / 'logs'}")
    assert result == run(config, tmp_path / "plain") | {"seconds": result["seconds"]}, "a log changes nothing"
    whole = lines(tmp_path / "logs")
    counts = Counter((line.split("|")[0], line.split("|")[2]) for line in whole)
    assert set(counts.values()) == {1}
    scalars = {tuple(line.split("|")[::2]): line.split("|")[1] for line in whole}
    assert float(scalars["metrics/average_accuracy", "16"]) == result["average_accuracy"]
    assert float(scalars["accuracy after each task/task 1", "8"]) == result["accuracy_matrix"][0][0]
    assert ("accuracy after each round/task 1", "4") in scalars

    trains = 0
    write = logs.RunLog.write

    def dies(self, step):
        nonlocal trains
        trains += step.kind == "train"
        write(self, step)
        if trains == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(logs.RunLog, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path / "b" / "whole", log_to=f"tensorboard:{tmp_path / 'others'}")
    monkeypatch.setattr(logs.RunLog, "write", write)
    for _ in range(2):  # resumed, and asked for again when it is finished
        run(config, tmp_path / "b" / "whole", log_to=f"tensorboard:{tmp_path / 'others'}")
        again = lines(tmp_path / "others")
        plain = [[line for line in each if not line.startswith("seconds")] for each in (again, whole)]
        assert plain[0] == plain[1]


@pytest.mark.parametrize("log_to", ["tensorboard", "tensorboard:", "wandb:here", ""])
def test_where_to_log(log_to, tmp_path):
    with pytest.raises(ValueError, match="give tensorboard:DIR"):
        run(make(SETTINGS), tmp_path / "a", log_to=log_to)
    assert not (tmp_path / "a").exists()


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"--log-to needs tensorboard, .*pip install 'accuacl\[logs\]'"):
        run(make(SETTINGS), tmp_path / "a", log_to=f"tensorboard:{tmp_path / 'logs'}")
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_reads_it(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    result = run(make(SETTINGS), tmp_path / "a", log_to=f"tensorboard:{tmp_path / 'logs'}")
    for _ in range(2):  # as it was written, and written anew
        read = events.EventAccumulator(str(tmp_path / "logs" / "a")).Reload()
        curve = read.Scalars("metrics/average_accuracy")
        assert [event.step for event in curve] == [8, 16]
        assert curve[-1].value == pytest.approx(result["average_accuracy"])
        assert "accuracy after each task/task 1" in read.Tags()["scalars"]
        assert b'"strategy": "entropy"' in read.Tensors("config/text_summary")[0].tensor_proto.string_val[0]
        run(make(SETTINGS), tmp_path / "a", log_to=f"tensorboard:{tmp_path / 'logs'}")
