"""Every way to end badly has a code that is documented, and says what happened, what it costs and what to do."""

import errno

import pytest
from botocore import exceptions as botocore_exceptions
from botocore.exceptions import BotoCoreError, ClientError, WaiterError
from botocore.parsers import ResponseParserError

from automation import errors
from automation.aws_errors import aws_errors, translated
from automation.errors import MEANINGS, ExitCode, RentblockError, machine_error


def subclasses(root: type) -> list[type]:
    return [each for child in root.__subclasses__() for each in (child, *subclasses(child))]


def client_error(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "AWS's words"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "DescribeInstances")  # type: ignore[arg-type]


def test_every_exit_code_is_documented() -> None:
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("kind", [each for each in subclasses(RentblockError) if each.__module__ == errors.__name__])
def test_every_error_has_a_code_of_its_own_kind(kind: type[RentblockError]) -> None:
    assert kind.exit_code not in (ExitCode.OK, ExitCode.FAILED, ExitCode.INTERRUPTED)


def test_an_error_says_three_things() -> None:
    error = errors.Refused(happened="It was refused.", cost="Nothing.", remedy="Ask.")
    assert str(error) == "It was refused. Nothing. Ask."


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnauthorizedOperation", errors.AwsSaysNo),
        ("AuthFailure", errors.CredentialsMissing),
        ("ExpiredToken", errors.CredentialsMissing),
        ("RequestExpired", errors.CredentialsMissing),
        ("InvalidClientTokenId", errors.CredentialsMissing),
    ],
)
def test_what_aws_answers_becomes_an_error_of_ours(code: str, kind: type[RentblockError]) -> None:
    with pytest.raises(kind, match="while looking") as caught, aws_errors("looking"):
        raise client_error(code)
    assert "AWS's words" in caught.value.happened


def test_a_page_that_is_not_aws_answer_is_an_aws_that_does_not_answer() -> None:
    """A proxy's sign-in page, or whoever answers under a region's misspelt name."""
    with pytest.raises(errors.AwsUnreachable, match="does not speak as AWS does"), aws_errors("looking"):
        raise ResponseParserError("invalid XML received")


def test_aws_own_code_is_kept() -> None:
    error = translated(client_error("InsufficientInstanceCapacity"), "launching")
    assert isinstance(error, errors.AwsSaysNo)
    assert error.code == "InsufficientInstanceCapacity"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (botocore_exceptions.NoCredentialsError(), errors.CredentialsMissing),
        (botocore_exceptions.ProfileNotFound(profile="team"), errors.CredentialsMissing),
        (botocore_exceptions.UnauthorizedSSOTokenError(), errors.CredentialsMissing),
        (botocore_exceptions.LoginRefreshRequired(), errors.CredentialsMissing),
        (botocore_exceptions.CredentialRetrievalError(provider="sso", error_msg="no"), errors.CredentialsMissing),
        (botocore_exceptions.EndpointConnectionError(endpoint_url="https://ec2"), errors.AwsUnreachable),
        (botocore_exceptions.ReadTimeoutError(endpoint_url="https://ec2"), errors.AwsUnreachable),
        (botocore_exceptions.NoRegionError(), errors.CredentialsMissing),
    ],
)
def test_no_answer_and_no_credentials_are_told_apart(error: Exception, kind: type[RentblockError]) -> None:
    assert isinstance(translated(error, "looking"), kind)


def test_no_exception_of_botocore_is_left_over() -> None:
    for kind in subclasses(BotoCoreError):
        error = kind.__new__(kind)
        if isinstance(error, WaiterError):
            error.last_response = {}
        with pytest.raises(RentblockError), aws_errors("looking"):
            raise error


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "space"), (errno.EADDRINUSE, "listens"), (errno.EACCES, "writable")]
)
def test_the_machine_is_named_with_a_remedy(code: int, words: str) -> None:
    error = machine_error(OSError(code, "told by the system", "/some/file"))
    assert error.exit_code == ExitCode.MACHINE
    assert "/some/file" in error.happened
    assert words in error.remedy
