"""Figures: how strategies look, curves, bars, matrices, contact sheets."""
