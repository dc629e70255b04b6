"""Greedy choice of a set of rows that represents all rows: for query strategies and memory policies."""

from accuacl.greedy.facility import LIMIT, facility_location
from accuacl.greedy.kernel import distinct, sample, squared_width, unit

__all__ = ["LIMIT", "distinct", "facility_location", "sample", "squared_width", "unit"]
