"""Pulumi providers that stand in for pulumi-aws and pulumi-eks in a rehearsal, attached by PULUMI_DEBUG_PROVIDERS.

server.py         starts both on loopback           protocol.py     values and errors on the wire
aws.py            the `aws` provider: no state of its own, all of it is in the simulated AWS
cloud.py          boto3 against the simulated AWS   compare.py      names and differences of inputs
resources/        one row per resource type         functions.py    one row per function (`aws.get_...`)
eks.py            the `eks` provider: builds what the component `eks.Cluster` builds
operations.py     what each engine operation changed, and the jump of virtual time that follows it
critical_path.py  how long an operation took, from the dependencies in the stack's state
"""
