"""A session: from the purchase of a block to the proof that nothing is left.

request.py     what a user asks for              plan.py        the block, its moments, its budget and its time-outs
folder.py      where a session keeps its files   journal.py     append-only lines on disk; entries.py their shapes
record.py      the value they fold into          fold.py        the fold
observe.py     what AWS and Kubernetes show now  decide.py      what to do next (pure)
operations.py  detached children                 child.py       such a child: `up` or `destroy` by the Automation API
adopt.py       what a killed engine left half made   shortlist.py  what could be rented, begin.py the purchase of it
loop.py        observe, decide, start, journal   rent.py        `rent()` and `run_to_end()`, the Python entry
"""
