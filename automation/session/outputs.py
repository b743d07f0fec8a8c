"""What the stack says about its cluster: kept in the session's folder, what is secret in private files apart."""

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kr8s.asyncio.objects import Secret
from pydantic import BaseModel, ConfigDict, ValidationError

from automation.errors import ClusterFailed, EngineFailed, MachineInTheWay, machine_error
from automation.ledger.folder import SessionFolder, write_whole
from automation.serving.cluster import Cluster

_SECRET = "vllm-api-key"
_KEY = "api-key"


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The stack's outputs that are no secret, by the names of the program."""

    gpu_node_group: str
    namespace: str
    service: str
    served_model: str


class _Secret(BaseModel):
    model_config = ConfigDict(extra="ignore")

    data: dict[str, str] = {}
    metadata: dict[str, object]


def write_outputs(folder: SessionFolder, values: Mapping[str, object]) -> None:
    """Keep the stack's outputs. Raises EngineFailed when the program gave none of that name."""
    try:
        outputs = Outputs(**{name: str(values[name]) for name in Outputs.__dataclass_fields__})
        kubeconfig = values["kubeconfig"]
    except KeyError as error:
        raise EngineFailed(
            happened=f"The stack came up without its output {error}.",
            cost="What it made stays and is billed.",
            remedy="Report this, and end the session with `rentblock down`.",
        ) from error
    text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
    write_whole(folder.kubeconfig, text)
    write_whole(folder.outputs, json.dumps(asdict(outputs), indent=2) + "\n")


def read_outputs(folder: SessionFolder) -> Outputs | None:
    """The outputs of the last `up`; None before one went well. Raises MachineInTheWay when they can't be read."""
    try:
        kept = json.loads(folder.outputs.read_text(encoding="utf-8"))
        return Outputs(**{name: kept[name] for name in Outputs.__dataclass_fields__})
    except FileNotFoundError:
        return None
    except OSError as error:
        raise machine_error(error) from error
    except (ValueError, TypeError, KeyError) as error:
        raise MachineInTheWay(
            happened=f"{folder.outputs} is not what `up` has written ({error}).",
            cost="The block's minutes go on.",
            remedy="Put it back from a copy, or end the session with `rentblock down`.",
        ) from error


def api_key(folder: SessionFolder, cluster: Cluster, namespace: str) -> str:
    """The endpoint's key, made in the cluster and kept in a private file. Raises ClusterFailed when there is none."""
    if not folder.api_key.exists():
        write_whole(folder.api_key, _read_key(cluster, namespace))
    return _text(folder.api_key)


def _read_key(cluster: Cluster, namespace: str) -> str:
    try:
        secrets = [_Secret.model_validate(item) for item in cluster.objects(Secret, namespace=namespace)]
        return next(
            b64decode(secret.data[_KEY]).decode() for secret in secrets if secret.metadata.get("name") == _SECRET
        )
    except (StopIteration, KeyError, ValueError, ValidationError) as error:
        raise ClusterFailed(
            happened=f"Secret {_SECRET} of namespace {namespace} holds no {_KEY}.",
            cost="The block runs, but nobody can use the endpoint.",
            remedy="Look at the Helm release `vllm`; the session tries again.",
        ) from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise machine_error(error) from error
