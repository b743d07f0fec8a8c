"""Arithmetic and data about a block, and nothing else: no Pulumi, no AWS, no clock; standard library only.

catalogue.py  what is known: instance types, models, regions, constants, each with source, date and confidence
catalogue/    that knowledge as TOML, for people to correct
block.py      a bought block, the instants of a session, the lengths that AWS sells
budget.py     how long the start may take, and every timeout that follows from it
costs.py      what lies outside the block's fee, useful hours, the break-even with a hosted API
ranking.py    which offer gives a useful GPU hour for the least money
"""
