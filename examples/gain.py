"""What choosing gained over chance, in three sentences: the results of two runs with the same number of labels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chosen", type=Path, help="directory of a finished run")
    parser.add_argument("chance", type=Path, help="directory of the same run with labels at random")
    parser.add_argument("--picture", type=Path, help="the picture to name at the end")
    options = parser.parse_args()
    chosen, chance = (json.loads((run / "result.json").read_text()) for run in (options.chosen, options.chance))
    config = chosen["config"]
    tasks = len(chosen["accuracy_matrix"])
    print(
        f"\nPairs of digits arrived one after the other; of each, {config['labels']} examples were labelled, "
        f"{tasks * config['labels']} in all, chosen by {config['strategy']}."
    )
    print(
        f"At the end the model is right about {chosen['average_accuracy']:.1f} % of new digits and has forgotten "
        f"{chosen['forgetting']:.1f} points; with as many labels at random and the paper's memory it is right about "
        f"{chance['average_accuracy']:.1f} % and has forgotten {chance['forgetting']:.1f}."
    )
    look = f"Look at {options.picture} to see what each strategy picks; then try" if options.picture else "Next, try"
    print(f"{look} your own images: accuacl project new mine --images FOLDER, accuacl project serve mine.")


if __name__ == "__main__":
    main()
