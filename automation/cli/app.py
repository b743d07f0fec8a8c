"""The verbs. Each makes a request or finds a session, hands it to `automation.session`, and prints what comes back.

What a verb works with is imported where it runs: boto3, kr8s and openai take a second that the help has no use for.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from automation.cli import options, terminal
from automation.cli.failures import EXIT_CODES, told
from automation.cli.guards import goes_on_as_it_was, only_one_is_open
from automation.cli.views import findings_view, keep_running, offers_json, offers_view, rows_table, status_rows
from automation.errors import ExitCode, RentblockError
from automation.ledger.folder import find

if TYPE_CHECKING:
    from automation.ledger.record import Record
    from automation.target import Target

MakeTarget = Callable[[], "Target"]
"""Makes the place where a verb works."""

BeforeChange = Callable[[], None]
"""Raises Refused when nothing may be changed from here; called before AWS is asked anything."""

# A search names no cluster, so nobody has to be let in to it.
_NOT_ASKED = ("192.0.2.1/32",)
_HELP = "Rent an AWS GPU block, serve a very large model on it, leave nothing behind."


def build_app(make_target: MakeTarget, before_change: BeforeChange = lambda: None) -> typer.Typer:
    """The command with the verbs of a session. The caller may add verbs of its own."""
    app = typer.Typer(
        help=_HELP, epilog=EXIT_CODES, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )
    out, err = Console(), terminal.console()
    _add_offers(app, make_target, out, err)
    _add_rent(app, make_target, before_change, err)
    _add_status(app, make_target, out, err)
    _add_down(app, make_target, before_change, err)
    _add_report(app, out, err)
    _add_doctor(app, make_target, out, err)
    return app


def _add_offers(app: typer.Typer, make_target: MakeTarget, out: Console, err: Console) -> None:
    @app.command(epilog=EXIT_CODES)
    def offers(
        model: options.Model = "kimi-k3",
        instance_type: options.InstanceType = "p6-b300.48xlarge",
        count: options.Count = 1,
        hours: options.Hours = 24,
        region: options.Region = None,
        weights: options.Weights = None,
        warm_caches: options.WarmCaches = False,
        max_fee_usd: options.MaxFee = None,
        max_usd_per_useful_hour: options.MaxHour = None,
        as_json: options.AsJson = False,
    ) -> None:
        """What AWS would sell, by the price of a useful GPU-hour. Buys nothing.

        Examples:
        $ rentblock offers --hours 48
        $ rentblock offers --region sa-east-1 --region us-west-2 --json
        """
        from automation.session.shortlist import search

        with told(err):
            request = options.request_from(
                model=model,
                instance_type=instance_type,
                instance_count=count,
                hours=hours,
                regions=region,
                weights_uri=weights,
                warm_caches=warm_caches,
                max_fee_usd=max_fee_usd,
                max_usd_per_useful_hour=max_usd_per_useful_hour,
                endpoint_cidrs=_NOT_ASKED,
            )
            ranked = search(request, make_target())
            if as_json:
                typer.echo(json.dumps(offers_json(ranked), indent=2))
            else:
                out.print(offers_view(ranked, out.width))


def _add_rent(app: typer.Typer, make_target: MakeTarget, before_change: BeforeChange, err: Console) -> None:
    @app.command(epilog=EXIT_CODES)
    def rent(
        context: typer.Context,
        cidr: Annotated[
            list[str] | None, typer.Option("--cidr", help="Network that may call the cluster; repeat it for more.")
        ] = None,
        model: options.Model = "kimi-k3",
        instance_type: options.InstanceType = "p6-b300.48xlarge",
        count: options.Count = 1,
        hours: options.Hours = 24,
        region: options.Region = None,
        weights: options.Weights = None,
        warm_caches: options.WarmCaches = False,
        max_fee_usd: options.MaxFee = None,
        max_usd_per_useful_hour: options.MaxHour = None,
        yes_pay: options.YesPay = None,
        capacity: Annotated[str, typer.Option(help="block, or on-demand.")] = "block",
        reservation: Annotated[str | None, typer.Option(help="A block bought before (cr-...): buy nothing.")] = None,
        reservation_fee_usd: options.ReservationFee = None,
        weights_kms_key: Annotated[
            str | None, typer.Option(help="ARN of your KMS key that the staged weights are encrypted with, if any.")
        ] = None,
        image_registry_prefix: Annotated[
            str | None, typer.Option(help="Mirror or pull-through cache to pull the model's image from.")
        ] = None,
        image_pull_secret: Annotated[
            str | None, typer.Option(help="Secret of the namespace vllm to pull that image with.")
        ] = None,
        parallel: Annotated[int, typer.Option(help="How many things the engine makes at once.")] = 16,
        session: Annotated[str | None, typer.Option("--session", help="Go on with this session; buy nothing.")] = None,
    ) -> None:
        """Buy a block, serve the model on it until its end, leave nothing behind.

        It works from the purchase until everything is gone: run it on a machine that stays on. Closing
        the terminal does not end it. If it ends, what runs goes on and is billed, nobody prepares or
        raises nodes, and --session goes on with it.

        Examples:
        $ rentblock rent --cidr 203.0.113.7/32 --max-fee-usd 3500 \\
            --weights s3://my-bucket/kimi-k3
        $ rentblock rent --session rtb-20261201-k3x9
        $ rentblock rent --cidr 203.0.113.7/32 --capacity on-demand --hours 2 \\
            --instance-type g6.xlarge --model qwen3-0.6b
        """
        from automation.cli.confirm import ask_for_the_fee
        from automation.cli.display import Lines, display_on
        from automation.session.begin import begin
        from automation.session.rent import resume

        with told(err):
            before_change()
            terminal.outlive()
            if session is not None:
                goes_on_as_it_was(context)
                found = find(_home(), session)
                target = make_target()
            else:
                request = options.request_from(
                    model=model,
                    instance_type=instance_type,
                    instance_count=count,
                    hours=hours,
                    regions=region,
                    weights_uri=weights,
                    warm_caches=warm_caches,
                    max_fee_usd=max_fee_usd,
                    max_usd_per_useful_hour=max_usd_per_useful_hour,
                    endpoint_cidrs=tuple(cidr or ()),
                    capacity=capacity,
                    reservation_id=reservation,
                    reservation_fee_usd=reservation_fee_usd,
                    pay_usd=yes_pay,
                    weights_kms_key_arn=weights_kms_key,
                    image_registry_prefix=image_registry_prefix,
                    image_pull_secret=image_pull_secret,
                    parallel=parallel,
                )
                target = make_target()
                found = begin(request, target, ask_for_the_fee(err, request), Lines(err))
            err.print(Text(keep_running(found)))
            err.print(Text(f"Go on after an interruption: rentblock rent --session {found.session}"))
            err.print(Text(f"End it before its time:      rentblock down --session {found.session}"))
            with display_on(err) as display:
                record = resume(target, found.session, display)
            _finish(err, target.home, record)


def _add_status(app: typer.Typer, make_target: MakeTarget, out: Console, err: Console) -> None:
    @app.command("status", epilog=EXIT_CODES)
    def show_status(session: options.Session = None, as_json: options.AsJson = False) -> None:
        """How a session stands; works in every state of it, also without AWS. Changes nothing.

        The fields of --json stay; docs/status.md tells them.

        Examples:
        $ rentblock status
        $ rentblock status --session rtb-20261201-k3x9 --json
        """
        from automation.cli.status_shape import status_now
        from automation.session.status import status

        with told(err):
            found = status(find(_home(), session), _reachable(make_target))
            if as_json:
                typer.echo(status_now(found).model_dump_json(indent=2))
            else:
                out.print(rows_table(status_rows(found)))


def _add_down(app: typer.Typer, make_target: MakeTarget, before_change: BeforeChange, err: Console) -> None:
    @app.command(epilog=EXIT_CODES)
    def down(
        session: options.Session = None,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    ) -> None:
        """End a session now: drain, destroy, sweep, report. Of the block's fee nothing comes back.

        What the sweep still finds of the session, in its stack or not, is deleted too, but for what
        may hold data of yours: volumes that the stack did not make, and machines that are not its
        cluster's. Run it again after something was left: it deletes and sweeps once more.

        Examples:
        $ rentblock down
        $ rentblock down --session rtb-20261201-k3x9 --yes
        """
        from automation.cli.confirm import ask_to_end
        from automation.cli.display import display_on
        from automation.session.rent import end

        with told(err):
            before_change()
            terminal.outlive()
            folder = find(_home(), session)
            if yes and session is None:
                only_one_is_open(_home())
            ask_to_end(err, folder.session, yes=yes)
            with display_on(err) as display:
                record = end(make_target(), folder, display, "`rentblock down`")
            _finish(err, folder.home, record)


def _add_report(app: typer.Typer, out: Console, err: Console) -> None:
    @app.command(epilog=EXIT_CODES)
    def report(session: options.Session = None, as_json: options.AsJson = False) -> None:
        """Write the session's report anew from its journal, and say where it is.

        Examples:
        $ rentblock report
        $ rentblock report --session rtb-20261201-k3x9 --json
        """
        from automation.ledger.journal import Journal
        from automation.session.report import write_report

        with told(err):
            folder = find(_home(), session)
            write_report(folder, Journal(folder.journal).record())
            if as_json:
                typer.echo((folder.root / "report.json").read_text(encoding="utf-8"))
            else:
                for name in ("report.json", "report.html"):
                    out.print(str(folder.root / name), soft_wrap=True, highlight=False)


def _add_doctor(app: typer.Typer, make_target: MakeTarget, out: Console, err: Console) -> None:
    @app.command(epilog=EXIT_CODES)
    def doctor(as_json: options.AsJson = False) -> None:
        """What is installed, which way it came, and what a real session lacks. Changes nothing.

        Ends with code 15 when something lacks; what could not be verified here is no fault.

        Examples:
        $ rentblock doctor
        $ rentblock doctor --json
        """
        from automation.cli.doctor import closing, examine

        with told(err):
            findings = list(examine(make_target, dict(os.environ)))
            if as_json:
                typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
            else:
                out.print(findings_view(findings, out.width))
                for sentence in closing(findings):
                    out.print(Text(f"\n{sentence}"))
            if any(finding.ok is False for finding in findings):
                raise typer.Exit(ExitCode.LACKING)


def _home() -> Path:
    """Where this user's sessions are."""
    from automation.target import home_from

    return home_from(os.environ)


def _reachable(make_target: MakeTarget) -> "Target | None":
    """The target, or None when there is none to be had: `status` then tells what the journal says."""
    try:
        return make_target()
    except RentblockError:
        return None


def _finish(err: Console, home: Path, record: "Record") -> None:
    """Say how the session ended, where its report is, and end with the code that says the same."""
    from automation.accounts.outcome import OK

    outcome = record.outcome or "still open"
    err.print(Text(f"Session {record.session}: {outcome}. Its report: {find(home, record.session).root}/report.html"))
    if record.residual:
        for left in record.residual:
            err.print(Text(f"Left: {left.told}."))
        err.print(
            Text(f"`rentblock down --session {record.session}` tries again; what it leaves is to delete by hand.")
        )
        raise typer.Exit(ExitCode.LEFT_BEHIND)
    if record.released:
        raise typer.Exit(ExitCode.PURCHASE)
    if record.outcome == OK or (record.end_asked and not record.gave_up):
        return
    raise typer.Exit(ExitCode.ACCEPTANCE if not record.accepted else ExitCode.FAILED)
