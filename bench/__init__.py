"""Benchmarks: what Interlock costs beside the bare minimum, measured in the same run.

`make bench` prints medians and ratios; nothing here asserts a time. Machines are shared and noisy,
so two things that are compared take turns, and the ratio is made turn by turn.
"""
