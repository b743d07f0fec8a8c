"""A simulated AWS in virtual time: moto over HTTP on loopback, with what moto lacks and what it does not enforce.

    aws = start_aws(world); aws.url, aws.port                   server.py; clock.py puts moto on virtual time
    aws.calls                                                   calls.py: who called what; `changed_something`
    aws.fleet.listener = kubelet; aws.cluster_endpoint = (url, base64 CA)      fleet.py: instances, nodes
    aws.blocks.reservations; HELD_RESERVATION_ID                capacity_blocks.py, capacity_block_operations.py
    aws.operation_ended(); aws.meter.bill(); aws.inventory()    meter.py: the cloud's own bill; inventory.py
    aws.stop()                                                  (one simulated AWS in a process at a time)
EKS: eks.py, node_groups.py, eks_contents.py, pod_identity.py, cluster_versions.py; its images in SSM: node_images.py.
Models in S3: staged_weights.py.
Auto Scaling: autoscaling.py. EC2's refusals: network.py, instances.py.
A missing operation is one public method in the class of its service: operations.py. User-Agents: see calls.Principal.
Where moto differs from EC2: ec2_corrections.py. Failed creations in EKS: eks_creations.py. Left in a VPC: leftovers.py.
"""
