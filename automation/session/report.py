"""A session's report, written from its record into its folder."""

from automation.accounts.report import build, write
from automation.ledger.folder import SessionFolder
from automation.ledger.record import Record
from automation.session.versions import versions
from planning.catalogue import load


def write_report(folder: SessionFolder, record: Record) -> None:
    """Write report.json and report.html. Raises MachineInTheWay."""
    write(build(record, load(), versions(folder)), folder.root)
