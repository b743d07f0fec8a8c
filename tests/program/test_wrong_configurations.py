"""A wrong configuration fails before anything is created, with everything that is wrong with it in one message."""

from typing import Any

import pytest

from components.settings import SettingsError

PROVIDERS = {"pulumi:providers:aws", "pulumi:providers:eks", "pulumi:pulumi:Stack"}


def test_all_that_is_wrong_comes_in_one_message_with_keys_and_remedies(program: Any, configuration: Any) -> None:
    wrong = {
        **configuration,
        "reservationID": "cr-0123456789abcdef0",
        "reservationId": "cb-0123456789abcdef0",
        "instanceType": "p6-b200.48xlarge",
        "endpointPublicAccessCidrs": '["0.0.0.0/0"]',
        "logRetentionDays": "8",
    }
    with pytest.raises(SettingsError) as caught:
        program(wrong)
    message = str(caught.value)
    assert "5 problem(s) in the configuration, nothing was created" in message
    for line in (
        "reservationID: there is no such key. Did you mean reservationId.",
        "reservationId: a cb- id names an offering, this needs the reservation bought from it. Give cr- and 17 hex",
        "model: kimi-k3 with one request of 1,048,576 tokens needs 2,014.7 GB of GPU memory; 8 GPU(s) of p6-b200",
        "endpointPublicAccessCidrs: together its networks are 0.0.0.0/0",
        "logRetentionDays: CloudWatch Logs knows no retention of 8 days",
    ):
        assert line in message
    assert all(problem.remedy for problem in caught.value.problems)


def test_a_reservation_of_another_type_and_zone_is_found_by_asking_aws(program: Any, configuration: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        program(
            {**configuration, "availabilityZoneId": "usw2-az1"},
            instanceType="p5en.48xlarge",
            state="expired",
        )
    assert [problem.key for problem in caught.value.problems] == ["reservationId", "instanceType", "availabilityZoneId"]
    assert "holds p5en.48xlarge" in str(caught.value)
    assert "the reservation is in usw2-az2" in str(caught.value)


def test_nothing_is_asked_of_the_engine_before_the_configuration_is_right(program: Any, configuration: Any) -> None:
    with pytest.raises(SettingsError):
        program({**configuration, "model": "gpt-2"})
    assert {request.type for request in program.requests} <= PROVIDERS


@pytest.mark.parametrize("stack", ["team.prod", "a" * 101])
def test_a_stack_that_no_cluster_can_be_named_after_fails_before_the_network(
    program: Any, configuration: Any, stack: str
) -> None:
    with pytest.raises(SettingsError, match=rf"stack: its name {stack} would be the EKS cluster's"):
        program(configuration, stack=stack)
    assert {request.type for request in program.requests} <= PROVIDERS


def test_a_reservation_that_aws_does_not_show_is_a_problem_like_any_other(program: Any, configuration: Any) -> None:
    with pytest.raises(
        SettingsError, match=r"reservationId: AWS did not show cr-0123456789abcdef0 in us-west-2: .*no such reservation"
    ):
        program(configuration, failure="no such reservation")
