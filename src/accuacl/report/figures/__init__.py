"""Figures: curves, bars, those of a single run, and contact sheets of picked images."""
