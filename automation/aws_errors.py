"""The one place where botocore's exceptions become errors of this project."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    LoginError,
    NoAuthTokenError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
    WaiterError,
)
from botocore.parsers import ResponseParserError

from automation.errors import NOTHING, AwsSaysNo, AwsUnreachable, CredentialsMissing, RentblockError

# AWS's own codes for "these credentials do not work", over all services that a session calls.
_CREDENTIAL_CODES = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "RequestExpired",  # EC2's word for credentials that have run out
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
# So EC2 says with AuthFailure that something, for example an address, is still in use by another of its services.
_NOT_YOURS = "permission to access the specified resource"
# A sign-in that is missing or has run out: `aws sso login`, `aws login`, a role, a credential process.
_NO_CREDENTIALS = (
    CredentialRetrievalError,
    LoginError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)


@contextmanager
def aws_errors(doing: str, *, cost: str = NOTHING) -> Iterator[None]:
    """Translate what botocore raises inside the block. `doing` completes "AWS did not answer while …"."""
    try:
        yield
    except ResponseParserError as error:
        # A proxy's page instead of AWS's answer, or an answer without any form.
        raise AwsUnreachable(
            happened=f"What answered while {doing} does not speak as AWS does.",
            cost=cost,
            remedy="Check the region's name, and the proxy; then run the same verb again.",
        ) from error
    except (ClientError, BotoCoreError, HTTPClientError) as error:
        raise translated(error, doing, cost) from error


def error_code(error: ClientError) -> str:
    """AWS's error code, for example `InvalidCapacityReservationId.NotFound`."""
    return error.response.get("Error", {}).get("Code", "Unknown")


def translated(error: Exception, doing: str, cost: str = NOTHING) -> RentblockError:
    """The error of this project that says what `error` means."""
    if isinstance(error, WaiterError) and "Error" in error.last_response:
        error = ClientError(error.last_response, error.kwargs["name"])
    if isinstance(error, ClientError):
        return _answered(error, doing, cost)
    if isinstance(error, WaiterError):
        return AwsSaysNo(
            happened=f"AWS did not finish while {doing}: {error}",
            code="WaiterError",
            cost=cost,
            remedy="Look at it in AWS, then run the same verb again.",
        )
    if isinstance(error, _NO_CREDENTIALS):
        return CredentialsMissing(
            happened=f"No usable AWS credentials while {doing}: {error}.",
            cost=cost,
            remedy="Sign in (`aws sso login`) or set AWS_PROFILE, then check with `rentblock doctor`.",
        )
    if isinstance(error, ConnectionError | HTTPClientError):
        return AwsUnreachable(
            happened=f"AWS did not answer while {doing}: {error}.",
            cost=cost,
            remedy="Check network, proxy and region, then run the same verb again.",
        )
    if isinstance(error, NoRegionError):
        return CredentialsMissing(
            happened=f"No AWS region is set while {doing}.", cost=cost, remedy="Give --region or set AWS_REGION."
        )
    return AwsUnreachable(
        happened=f"The AWS client failed while {doing}: {error}.", cost=cost, remedy="Check with `rentblock doctor`."
    )


def _answered(error: ClientError, doing: str, cost: str) -> RentblockError:
    code = error_code(error)
    text = error.response.get("Error", {}).get("Message", str(error))
    if code in _CREDENTIAL_CODES and _NOT_YOURS not in text:
        return CredentialsMissing(
            happened=f"AWS does not accept the credentials while {doing}: {text}",
            cost=cost,
            remedy="Sign in again, then check with `rentblock doctor`.",
        )
    return AwsSaysNo(
        happened=f"AWS refused while {doing}: {code}: {text}",
        code=code,
        cost=cost,
        remedy="Repair what AWS names, then run the same verb again.",
    )
