"""Figures by which the harness is judged, measured on itself: ``python -m benchmarks``."""
