"""Greedy choice of a set of rows that stands for all: for query strategies and for what a memory keeps."""

from accuacl.greedy.facility import LIMIT, facility_location
from accuacl.greedy.kernel import distinct, sample, squared_width, unit

__all__ = ["LIMIT", "distinct", "facility_location", "sample", "squared_width", "unit"]
