"""What choosing gained over chance, in three sentences: the results of two runs with the same number of labels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chosen", type=Path, help="directory of a finished run")
    parser.add_argument("chance", type=Path, help="directory of the same run with labels at random")
    parser.add_argument("--paper", type=Path, help="the same with labels at random and the paper's memory")
    parser.add_argument("--picture", type=Path, help="the picture to name at the end")
    options = parser.parse_args()
    chosen, chance = read(options.chosen), read(options.chance)
    config = chosen["config"]
    tasks = len(chosen["accuracy_matrix"])
    print(
        f"\nPairs of digits arrived one after the other; of each, {config['labels']} examples were labelled, "
        f"{tasks * config['labels']} in all, chosen by {config['strategy']}."
    )
    print(
        f"At the end the model is right about {chosen['average_accuracy']:.1f} % of new digits and has forgotten "
        f"{chosen['forgetting']:.1f} points; with as many labels at random it is right about "
        f"{chance['average_accuracy']:.1f} % and has forgotten {chance['forgetting']:.1f}"
        + (f", and with the paper's memory {said(read(options.paper))}." if options.paper else ".")
    )
    look = f"Look at {options.picture} to see what each strategy picks; then try" if options.picture else "Next, try"
    print(f"{look} your own images: accuacl project new mine --images FOLDER, accuacl project serve mine.")


def read(run: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((run / "result.json").read_text())
    return result


def said(result: dict[str, Any]) -> str:
    return f"{result['average_accuracy']:.1f} % and {result['forgetting']:.1f}"


if __name__ == "__main__":
    main()
