"""The Pulumi packages warn of modules of their own when they are imported; that is no finding of ours."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import pulumi_aws

    assert pulumi_aws.ec2.Vpc
    assert pulumi_aws.eks.NodeGroup
