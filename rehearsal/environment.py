"""What a child of a rehearsal sees of the machine it runs on.

A stand-in never meets the real thing: a child starts from an empty environment and gets a home of its own, so the
user's credentials, profiles, kubeconfig, Pulumi login and the instance metadata service are out of its reach.
"""

import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

# Of the user's environment only what shapes text on a terminal, and how this machine trusts certificates, is passed on.
_PASSED_ON = (
    "COLORTERM", "COLUMNS", "CI", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "NO_COLOR", "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE", "TERM", "TZ",
)  # fmt: skip

WORLD_ID = "RENTBLOCK_WORLD_ID"
"""Marks every process of one world, whoever started it: the reaper ends what carries it."""

WORLD_FILE = "RENTBLOCK_WORLD"
"""Path of the file that tells a child how to reach its world; set only inside one."""


@dataclass(frozen=True, kw_only=True)
class WorldFolder:
    """The files of one world: everything it writes is below `root`, which the reaper removes."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def pulumi_home(self) -> Path:
        return self.root / "pulumi"

    @property
    def backend(self) -> Path:
        """File backend of every stack in this world: the simulated clock reads the dependencies of resources here."""
        return self.root / "backend"

    @property
    def address_file(self) -> Path:
        return self.root / "world.json"

    @property
    def enter_script(self) -> Path:
        """A shell script that gives the shell which sources it the environment of the world's children."""
        return self.root / "enter.sh"

    @property
    def rentblock_home(self) -> Path:
        return self.home / "rentblock"

    def create(self) -> None:
        """Make the folders, readable by their owner only.

        Raises:
            OSError: the disk is full or the folder can't be written.
        """
        for folder in (self.root, self.home, self.bin, self.pulumi_home, self.backend, self.root / "tmp"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def shed_aws_settings(environ: MutableMapping[str, str]) -> None:
    """Take the user's AWS settings out of the environment of the process that stands in for AWS.

    It needs none, and must never meet the real one. moto reads them as soon as it is loaded: a profile that does not
    exist, or a file that can't be read, would end the process there.
    """
    for name in [name for name in environ if name.startswith("AWS_")]:
        del environ[name]
    environ.update(AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)


def marked(world_id: str, host: Mapping[str, str]) -> dict[str, str]:
    """The environment for the world's own servers: the host's, and the mark by which the reaper finds them."""
    return {**host, WORLD_ID: world_id}


def child_environment(
    *,
    world_id: str,
    folder: WorldFolder,
    endpoint_url: str,
    region: str,
    kubeconfig: Path,
    debug_providers: str,
    aws_wait_percent: int,
    host: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of a child: nothing of `host` but what `_PASSED_ON` names, and its PATH behind ours."""
    passed_on = {name: value for name, value in host.items() if name in _PASSED_ON or name.startswith("LC_")}
    path = [str(folder.bin), str(Path(sys.executable).parent), *host.get("PATH", os.defpath).split(os.pathsep)]
    return passed_on | {
        WORLD_ID: world_id,
        WORLD_FILE: str(folder.address_file),
        "PATH": os.pathsep.join(path),
        "HOME": str(folder.home),
        "TMPDIR": str(folder.root / "tmp"),
        "RENTBLOCK_HOME": str(folder.rentblock_home),
        "RENTBLOCK_TARGET_FACTORY": "rehearsal.target:world_target",
        "KUBECONFIG": str(kubeconfig),
        # moto takes any key; these are no one's.
        "AWS_ACCESS_KEY_ID": "rehearsal",
        "AWS_SECRET_ACCESS_KEY": "rehearsal",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(folder.home / ".aws" / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder.home / ".aws" / "credentials"),
        "PULUMI_HOME": str(folder.pulumi_home),
        "PULUMI_BACKEND_URL": folder.backend.absolute().as_uri(),
        # The passphrase protects nothing here: the world's state is thrown away with the world.
        "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
        "PULUMI_DEBUG_PROVIDERS": debug_providers,
        # The AWS provider of the toolchain sleeps this share of its waits (toolchain/modules/pulumi-aws/trim/edits.go).
        "RENTBLOCK_AWS_WAIT_PERCENT": str(aws_wait_percent),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
