"""Runs as companies train them: clicks, churn, demand, defects, retrieval, tuning, pricing, each with one fault.

`python -m benchmarks.loops.industry --into FOLDER` trains them all and writes a folder a run, with its log in the
style of one of the teams and mostly its configuration, and `labels.jsonl` beside them.
"""
