"""Benchmarks: `python -m benchmarks` (= `make bench`); see docs/benchmarks.md."""
