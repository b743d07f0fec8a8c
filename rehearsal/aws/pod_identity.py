"""EKS Pod Identity: which IAM role the pods of a service account get. moto has none of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from rehearsal.aws.clock import utcnow
from rehearsal.aws.eks_contents import Answer, ClusterContents, Item
from rehearsal.aws.operations import Request, refuse
from rehearsal.delays import Refusal


class PodIdentityOperations:
    """Each public method is an operation of EKS."""

    def __init__(self, contents: ClusterContents, refusals: Mapping[str, Refusal]) -> None:
        self._contents = contents
        self._refusals = refusals

    def create_pod_identity_association(self, request: Request) -> Answer:
        contents = self._contents.of(request)
        namespace, account = request.text("namespace"), request.text("serviceAccount")
        for known in contents.associations.values():
            if (known["namespace"], known["serviceAccount"]) == (namespace, account):
                raise refuse(self._refusals["exists"], kind="association", name=f"{namespace}/{account}")
        association_id = f"a-{secrets.token_hex(9)[:17]}"
        arn = f"{contents.cluster.arn.replace(':cluster/', ':podidentityassociation/')}/{association_id}"
        contents.associations[association_id] = {
            "clusterName": request.text("clusterName"),
            "namespace": namespace,
            "serviceAccount": account,
            "roleArn": request.text("roleArn"),
            "disableSessionTags": request.flag("disableSessionTags"),
            "associationArn": arn,
            "associationId": association_id,
            "tags": request.record("tags"),
            "createdAt": utcnow(),
            "modifiedAt": utcnow(),
        }
        return {"association": contents.associations[association_id]}

    def describe_pod_identity_association(self, request: Request) -> Answer:
        return {"association": self._association(request)}

    def list_pod_identity_associations(self, request: Request) -> Answer:
        shown = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId")
        known = self._contents.of(request).associations.values()
        return {"associations": [{name: item[name] for name in shown} for item in known]}

    def update_pod_identity_association(self, request: Request) -> Answer:
        association = self._association(request)
        association.update(roleArn=request.text("roleArn") or association["roleArn"], modifiedAt=utcnow())
        return {"association": association}

    def delete_pod_identity_association(self, request: Request) -> Answer:
        association = self._association(request)
        return {"association": self._contents.of(request).associations.pop(str(association["associationId"]))}

    def _association(self, request: Request) -> Item:
        associations, wanted = self._contents.of(request).associations, request.text("associationId")
        if wanted not in associations:
            raise refuse(self._refusals["not_found"], kind="association", name=wanted)
        return associations[wanted]
