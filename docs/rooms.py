"""Draw the plan of rooms: `python docs/rooms.py` writes docs/images/rooms.svg.

An arrow leads from a room to a room that imports it; arrows that follow from others are left out, and so are those of
base, which all rooms use.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "accuacl"
PLACES = {  # column, row: data goes from left to right
    "features": (0, 0), "greedy": (0, 0.95),
    "fisher": (1, 0), "memory": (1, 1.5), "models": (1, 2.2), "ridge": (1, 2.9),
    "strategies": (2, 0), "learners": (2, 1.6), "data": (2, 2.8), "torch": (2, 3.55), "engines": (2, 4.3),
    "pools": (3, 0), "experiment": (3, 1.6), "reference": (3, 2.6), "bench": (3, 3.5), "skactiveml": (3, 0.8),
    "embed": (4, 0.4), "report": (5, 2.8), "sweeps": (4, 3.6),
    "labeling": (5, 1.4), "cli": (6, 2.4),
}  # fmt: skip
STEP_X, STEP_Y, WIDTH, HEIGHT, MARGIN = 150, 78, 108, 36, 20


def used_by(room: str) -> set[str]:
    """The rooms that a room imports."""
    place = SOURCE / room
    files = place.rglob("*.py") if place.is_dir() else [SOURCE / f"{room}.py"]
    used = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "accuacl":
                parts = node.module.split(".")
                used |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return (used & PLACES.keys()) - {room}


def direct(uses: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that no longer path replaces."""

    def reach(room: str) -> set[str]:
        return uses[room] | {further for other in uses[room] for further in reach(other)}

    return [
        (room, other)
        for room, others in sorted(uses.items())
        for other in sorted(others)
        if not any(other in reach(between) for between in others - {other})
    ]


def draw() -> str:
    """The plan as SVG, readable on light and on dark pages."""
    rooms = {room for room in PLACES if (SOURCE / room).is_dir() or (SOURCE / f"{room}.py").exists()}
    centres = {
        room: (MARGIN + WIDTH / 2 + x * STEP_X, MARGIN + HEIGHT / 2 + y * STEP_Y)
        for room, (x, y) in PLACES.items()
        if room in rooms
    }
    width = max(x for x, _ in centres.values()) + WIDTH / 2 + MARGIN
    height = max(y for _, y in centres.values()) + HEIGHT / 2 + 3 * MARGIN + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#5b6b7b"/></marker></defs>',
    ]
    for room, other in direct({room: used_by(room) & rooms for room in rooms}):
        (x2, y2), (x1, y1) = centres[room], centres[other]  # data goes from the used room to the one that uses it
        start, end = x1 + WIDTH / 2, x2 - WIDTH / 2
        if start > end:  # one above the other
            start, end = x1, x2
            y1, y2 = (y1 + HEIGHT / 2, y2 - HEIGHT / 2) if y1 < y2 else (y1 - HEIGHT / 2, y2 + HEIGHT / 2)
        bend = (end - start) / 2
        lines.append(
            f'<path d="M{start:.0f} {y1:.0f} C{start + bend:.0f} {y1:.0f} {end - bend:.0f} {y2:.0f} {end:.0f} {y2:.0f}"'
            ' fill="none" stroke="#5b6b7b" stroke-width="1.3" marker-end="url(#tip)"/>'
        )
    for room, (x, y) in sorted(centres.items()):
        lines += [
            f'<rect x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
            ' fill="#e8f0f8" stroke="#2b5c8a"/>',
            f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" font-size="15" fill="#17324d">{room}</text>',
        ]
    floor = height - MARGIN - HEIGHT
    lines += [
        f'<rect x="{MARGIN}" y="{floor:.0f}" width="{width - 2 * MARGIN:.0f}" height="{HEIGHT}" rx="6" fill="#f3efe4"'
        ' stroke="#8a6d2b"/>',
        f'<text x="{width / 2:.0f}" y="{floor + 23:.0f}" text-anchor="middle" font-size="15" fill="#4d3b17">'
        "base: errors, files, randomness, progress, users' files (every room stands on it)</text>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "images" / "rooms.svg").write_text(draw())
