"""A session: from the purchase of a block to the proof that nothing is left.

begin.py           find, approve, buy               shortlist.py       what could be rented, best first
preflight.py       what would stop the stack        staged_weights.py  where in S3 the model lies
loop.py            observe, decide, start, journal  rent.py            `rent()` and `run_to_end()`, the Python entry
plan.py            the block, its moments, budget   decide.py          what to do next (pure)
observe.py         what AWS and Kubernetes show     observation.py     the value that a look is
billed.py          what bills beside the block      nodes.py           the GPU group's size, up and down
steps.py           what the loop does itself        operations.py      detached children, and their last words
child.py           such a child: `up` or `destroy`  engine.py          the Automation API in a folder of its own
stack_config.py    what the program is told         outputs.py         what the stack tells
eks_health.py      failed creations in EKS are deleted; `up` counts only when EKS says ACTIVE
adopt.py           what a killed engine left half made; half_made.py: its Helm releases
display.py         what people are shown            status.py          how a session stands
report.py          the report, from the record      versions.py        what it names
"""
