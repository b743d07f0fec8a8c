"""The proof that nothing of a session is left.

sweep.py      everything that bills or blocks: by the session's tag, by its cluster's name, and in its VPC
others.py     what others made in the session's VPC is deleted while the engine destroys the stack
delete.py     what a sweep still finds is deleted, each kind after what holds it up
scope.py      whose left-overs are looked for, and how AWS is asked
ec2.py        EC2 and VPC, one row for each kind          services.py   EKS, Auto Scaling, load balancers, logs, IAM
prices.py     what a left-over costs a day
"""
