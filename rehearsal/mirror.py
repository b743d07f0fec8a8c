"""A checkout seen from inside a world: the same files, except that stack files are copies.

`pulumi stack init` and `pulumi up` write an encryption salt into `Pulumi.<stack>.yaml`. In a world they write it into a
copy, so a rehearsal never changes the user's checkout, also when it is killed half way.
"""

import shutil
from pathlib import Path

import yaml

from automation.errors import InvalidRequest

# How a stack's secrets are encrypted belongs to the real stack; the world has a passphrase of its own.
_ENCRYPTION_KEYS = ("encryptionsalt", "encryptedkey", "secretsprovider")


def project_of(folder: Path) -> Path | None:
    """The folder with the `Pulumi.yaml` that governs `folder`: it or the nearest above, as the engine looks for it."""
    return next((place for place in (folder, *folder.parents) if (place / "Pulumi.yaml").exists()), None)


def mirror(checkout: Path, into: Path, inside: Path = Path()) -> Path:
    """Lay out `checkout` at `into`: links to its entries, copies of its stack files without their encryption.

    `inside` is a folder of the checkout, relative to it, in which somebody will stand: it is laid out the same way, for
    whoever stood in a link would stand in the checkout itself, and the engine would find the real stack files above.

    Raises:
        OSError: the disk is full or `into` exists.
        InvalidRequest: a stack file is no YAML.
    """
    into.mkdir(mode=0o700)
    for entry in checkout.iterdir():
        if inside.parts and entry.name == inside.parts[0]:
            mirror(entry, into / entry.name, Path(*inside.parts[1:]))
        elif entry.match("Pulumi.*.yaml"):
            _copy_stack_file(entry, into / entry.name)
        elif entry.name == "Pulumi.yaml":
            shutil.copy(entry, into / entry.name)
        else:
            (into / entry.name).symlink_to(entry.resolve())
    return into


def stack_names(project: Path) -> tuple[str, ...]:
    """The stacks that the project has a file for, `dev` first."""
    names = sorted(file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in project.glob("Pulumi.*.yaml"))
    return tuple(sorted(names, key=lambda name: name != "dev"))


def _copy_stack_file(file: Path, copy: Path) -> None:
    remedy = "Put it right and try again."
    try:
        settings = yaml.safe_load(file.read_text()) or {}
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" in line {where.line + 1}" if where else ""
        raise InvalidRequest(happened=f"{file.name} is no YAML{line}.", remedy=remedy) from error
    if not isinstance(settings, dict):
        raise InvalidRequest(happened=f"{file.name} holds no keys.", remedy=remedy)
    copy.write_text(yaml.safe_dump({key: value for key, value in settings.items() if key not in _ENCRYPTION_KEYS}))
