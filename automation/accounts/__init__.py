"""What a session cost and gave: its minutes, its money, and the report that says both.

minutes.py     where the block's paid minutes went: served, or lost to one of LOSS_CAUSES (pure)
outcome.py     the one rule for "ok"
schema.py      the shape of report.json (pydantic); docs/report.md describes it and is tested against it
report.py      builds the report from a Record, writes report.json and report.html
page.py        report.html: one page without anything from outside, with page.html.j2 and waterfall.py (its SVG)
summary.py     the same in a terminal
"""
