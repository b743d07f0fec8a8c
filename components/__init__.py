"""The Pulumi program of one session: an EKS cluster, a group of GPU nodes that waits for its block, and vLLM on it.

settings.py      the stack's configuration, all its errors at once, the only reader of it; stack_file.py: its keys
versions.py      every pin; images.py: image references; names.py: names that other packages look for
location.py      region, reservation and zones, as AWS shows them; trust.py: who may take a role
network.py, cluster.py, addons.py, node_groups.py, device_plugin.py, weights_access.py, vllm.py
                 one component each, its frozen Args beside it, pure builders for the requests it makes
platform.py      wires them, in order; program.py: settings -> platform -> stack outputs
next_step.py     what a person does after `pulumi up`
No boto3, no clock, no environment here, and nothing that buys.
"""
