"""Pulumi providers that stand in for pulumi-aws and pulumi-eks in a rehearsal, attached by PULUMI_DEBUG_PROVIDERS.

server.py         starts both on loopback           protocol.py      values and errors on the wire
aws.py            the `aws` provider: no state of its own, all of it is in the simulated AWS
resources/        one row per resource type         functions.py     one row per function (`aws.get_...`)
lifecycle.py      what every resource goes through  compare.py       names and differences of inputs
cloud.py          boto3 against the simulated AWS   sessions.py      region and default tags of each provider
eks.py            the `eks` provider: builds what the component `eks.Cluster` builds
operations.py     what engine operations changed, and the jump of virtual time that follows them
critical_path.py  how long an operation took, from the dependencies in the stack's state
"""
