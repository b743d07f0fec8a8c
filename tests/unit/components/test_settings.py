"""Each way in which a configuration can be wrong, its key and its remedy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml

from components.location import LookupFailed, Reservation
from components.settings import SettingsError, judge
from components.stack_file import REMEDIES, StackFile
from planning.catalogue import load

BLOCK: dict[str, object] = {
    "region": "us-west-2",
    "reservationId": "cr-0123456789abcdef0",
    "instanceType": "p6-b300.48xlarge",
    "model": "kimi-k3",
    "endpointPublicAccessCidrs": ["203.0.113.7/32"],
}
KEY_ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
KEY = f"arn:aws:kms:us-west-2:111122223333:key/{KEY_ID}"
WEIGHTS = "s3://bucket/kimi-k3"
BY_THE_HOUR: dict[str, object] = {
    "region": "sa-east-1",
    "capacity": "on-demand",
    "availabilityZoneId": "sae1-az1",
    "instanceType": "g6.xlarge",
    "model": "qwen3-0.6b",
    "endpointPublicAccessCidrs": ["203.0.113.7/32"],
}


@dataclass
class Aws:
    """What AWS says about a reservation and about zones."""

    state: str = "scheduled"
    instance_type: str = "p6-b300.48xlarge"
    zone_id: str = "usw2-az2"
    zones: tuple[str, ...] = ("usw2-az4", "usw2-az2", "sae1-az1", "sae1-az3")
    silent: bool = False
    asked: list[str] = field(default_factory=list)

    def reservation(self, region: str, reservation_id: str) -> Reservation:
        self.asked.append(f"{region} {reservation_id}")
        if self.silent:
            raise LookupFailed("No credentials.\n")
        return Reservation(instance_type=self.instance_type, availability_zone_id=self.zone_id, state=self.state)

    def zone_ids(self, region: str) -> tuple[str, ...]:
        if self.silent:
            raise LookupFailed("No credentials.\n")
        return self.zones


def problems(raw: Mapping[str, object], aws: Aws | None = None, stack: str | None = None) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        judge(raw, aws or Aws(), stack=stack)
    assert caught.value.problems
    assert all(problem.remedy for problem in caught.value.problems)
    assert ".." not in str(caught.value)
    found: dict[str, str] = {}
    for problem in caught.value.problems:
        found[problem.key] = f"{found.get(problem.key, '')}{problem.what}. {problem.remedy}.\n"
    return found


def test_a_right_configuration_becomes_settings() -> None:
    settings = judge(BLOCK, Aws())
    assert settings.reservation_id == "cr-0123456789abcdef0"
    assert (settings.availability_zone_id, settings.second_zone_id) == ("usw2-az2", "sae1-az1")
    assert settings.instance_type.gpus == 8
    assert settings.instance_count == 1
    assert settings.weights is None
    assert settings.log_retention_days == 7


def test_a_gpu_by_the_hour_needs_a_zone_and_asks_for_no_reservation() -> None:
    aws = Aws()
    settings = judge(BY_THE_HOUR, aws)
    assert settings.reservation_id is None
    assert settings.availability_zone_id == "sae1-az1"
    assert aws.asked == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "invoking aws:ec2/getZones:getZones: 1 error occurred:\n\t* fetching zones:\n  no credentials.\n\n",
            "fetching zones: no credentials",
        ),
        (
            "invoking aws:ec2/getZones:getZones: 2 errors occurred:\n\t* no region\n\t* no account\n\n",
            "2 errors occurred: * no region * no account",
        ),
        ("No credentials.\n", "No credentials"),
    ],
)
def test_what_a_look_up_said_is_a_part_of_one_sentence(said: str, told: str) -> None:
    assert str(LookupFailed(said)) == told


def test_numbers_come_as_the_text_that_pulumi_keeps() -> None:
    settings = judge({**BLOCK, "instanceCount": "2", "logRetentionDays": "30"}, Aws())
    assert (settings.instance_count, settings.log_retention_days) == (2, 30)


@pytest.mark.parametrize("key", ["region", "reservationId", "instanceType", "model", "endpointPublicAccessCidrs"])
def test_a_missing_key_is_named(key: str) -> None:
    found = problems({name: value for name, value in BLOCK.items() if name != key})
    assert list(found) == [key]
    assert "missing" in found[key]


def test_an_empty_configuration_names_all_that_is_missing_at_once() -> None:
    assert set(problems({})) == {"region", "reservationId", "instanceType", "model", "endpointPublicAccessCidrs"}


@pytest.mark.parametrize(
    ("changes", "key", "says"),
    [
        ({"reservationID": "x"}, "reservationID", "Did you mean reservationId"),
        ({"colour": "red"}, "colour", "the keys are region, capacity"),
        ({"reservationId": "cb-0123456789abcdef0"}, "reservationId", "names an offering"),
        ({"reservationId": "cr-0123456789ABCDEF0"}, "reservationId", "not the right form"),
        ({"reservationId": "cr-0123456789abcdef01"}, "reservationId", "not the right form"),
        ({"reservationId": ""}, "reservationId", "it is missing"),
        ({"capacity": "spot"}, "capacity", "Give block or on-demand"),
        ({"region": "us-wset-2"}, "region", "unknown region 'us-wset-2'"),
        ({"instanceType": "p6-b300"}, "instanceType", "unknown instance type 'p6-b300'; known: "),
        ({"model": "gpt-2"}, "model", "unknown model 'gpt-2'; known: kimi-k3"),
        ({"instanceCount": "0"}, "instanceCount", "from 1 to 64"),
        ({"instanceCount": "65"}, "instanceCount", "from 1 to 64"),
        ({"instanceCount": "two"}, "instanceCount", "from 1 to 64"),
        ({"endpointPublicAccessCidrs": []}, "endpointPublicAccessCidrs", "it is missing"),
        ({"endpointPublicAccessCidrs": "203.0.113.7/32"}, "endpointPublicAccessCidrs", "Give a list"),
        ({"endpointPublicAccessCidrs": ["203.0.113.7/24"]}, "endpointPublicAccessCidrs[0]", "host bits set"),
        ({"endpointPublicAccessCidrs": ["10.0.0.0/8", "home"]}, "endpointPublicAccessCidrs[1]", "home"),
        ({"allowAnyAddress": "yes"}, "allowAnyAddress", "I accept that anyone can reach this endpoint"),
        ({"weights": "https://bucket/k3"}, "weights", "s3://bucket/prefix"),
        ({"weights": "s3://Bucket/k3"}, "weights", "s3://bucket/prefix"),
        ({"weightsKmsKeyArn": KEY}, "weightsKmsKeyArn", "no weights in S3 to decrypt. Remove it, or set weights"),
        *(
            ({"weights": WEIGHTS, "weightsKmsKeyArn": wrong}, "weightsKmsKeyArn", says)
            for wrong, says in {
                KEY_ID: "not the right form",
                KEY.replace(KEY_ID, "*"): "not the right form",
                KEY.replace("111122223333", ""): "not the right form",
                KEY.replace("aws:kms", "aws-cn:kms"): "not the right form",
                KEY.replace(f"key/{KEY_ID}", "alias/weights"): "by no alias",
                KEY.replace("us-west-2", "us-east-1"): "the key is in us-east-1",
            }.items()
        ),
        ({"imageRegistryPrefix": "https://mirror.example"}, "imageRegistryPrefix", "without https://"),
        ({"imageRegistryPrefix": "mirror.example/"}, "imageRegistryPrefix", "without https://"),
        ({"imagePullSecret": "My_Secret"}, "imagePullSecret", "kubernetes.io/dockerconfigjson"),
        ({"imageDigest": "v0.29.0"}, "imageDigest", "sha256: and 64 hex digits"),
        ({"logRetentionDays": "8"}, "logRetentionDays", "no retention of 8 days"),
    ],
)
def test_a_wrong_key_is_named_with_its_remedy(changes: dict[str, object], key: str, says: str) -> None:
    found = problems({**BLOCK, **changes})
    assert list(found) == [key]
    assert says in found[key]


@pytest.mark.parametrize("key", [KEY, KEY.replace(KEY_ID, f"mrk-{'0a' * 16}")])
def test_a_key_for_the_weights_is_taken_by_its_arn(key: str) -> None:
    assert judge({**BLOCK, "weights": WEIGHTS, "weightsKmsKeyArn": key}, Aws()).weights_kms_key_arn == key
    assert judge({**BLOCK, "weights": WEIGHTS}, Aws()).weights_kms_key_arn is None


def test_a_stack_pulls_from_its_registry_prefix_by_its_digest() -> None:
    tag, digest = load().model("kimi-k3").image, f"sha256:{'0a' * 32}"
    assert judge(BLOCK, Aws()).image.reference == tag
    assert judge({**BLOCK, "imageDigest": digest}, Aws()).image.reference == f"{tag}@{digest}"
    settings = {"imageDigest": digest, "imageRegistryPrefix": "mirror.example:5000/hub", "imagePullSecret": "mirror"}
    image = judge({**BLOCK, **settings}, Aws()).image
    assert (image.reference, image.pull_secret) == (f"mirror.example:5000/hub/{tag}@{digest}", "mirror")


def test_a_digest_of_the_catalogue_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    known = load()
    verified = replace(known.model("kimi-k3"), image_digest=f"sha256:{'0b' * 32}")
    monkeypatch.setattr("components.settings.load", lambda: replace(known, models={"kimi-k3": verified}))
    found = judge({**BLOCK, "imageDigest": f"sha256:{'0a' * 32}"}, Aws()).image.reference
    assert found == f"{verified.image}@{verified.image_digest}"


@pytest.mark.parametrize("stack", ["team.prod", "-team", "_team", ".team", "a" * 101, "équipe", "team\n", ""])
def test_a_stack_whose_name_no_cluster_can_have_is_refused_with_all_else_that_is_wrong(stack: str) -> None:
    found = problems({**BLOCK, "logRetentionDays": "8"}, stack=stack)
    assert set(found) == {"stack", "logRetentionDays"}
    assert f"its name {stack} would be the EKS cluster's, which has 1 to 100 letters" in found["stack"]
    assert "pulumi stack rename" in found["stack"]


@pytest.mark.parametrize("stack", ["dev", "9-Lives_of_it", "rtb-20261201-ab12", "a" * 100])
def test_a_stack_may_have_any_name_that_a_cluster_may_have(stack: str) -> None:
    assert judge(BLOCK, Aws(), stack=stack).region == "us-west-2"


@pytest.mark.parametrize(
    "region", ["us-gov-west-1", "cn-north-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "eusc-de-east-1"]
)
def test_a_region_of_another_partition_is_refused_and_nothing_is_asked_there(region: str) -> None:
    aws = Aws()
    found = problems({**BLOCK, "region": region}, aws)
    assert list(found) == ["region"]
    assert f"{region} is not of the partition aws" in found["region"]
    assert "such as us-west-2" in found["region"]
    assert aws.asked == []


@pytest.mark.parametrize("region", load().regions)
def test_every_region_of_the_catalogue_is_of_the_partition_that_the_program_was_made_for(region: str) -> None:
    assert judge({**BLOCK, "region": region}, Aws()).region == region


@pytest.mark.parametrize(
    "cidrs",
    [["0.0.0.0/0"], ["203.0.113.7/32", "0.0.0.0/0"], ["::/0"], ["0.0.0.0/1", "128.0.0.0/1"], ["0.0.0.0/0", "::/0"]],
)
def test_no_list_lets_anyone_in_without_the_sentence(cidrs: list[str]) -> None:
    found = problems({**BLOCK, "endpointPublicAccessCidrs": cidrs})
    assert "I accept that anyone can reach this endpoint" in found["endpointPublicAccessCidrs"]
    sentence = {"allowAnyAddress": "I accept that anyone can reach this endpoint"}
    settings = judge({**BLOCK, "endpointPublicAccessCidrs": cidrs, **sentence}, Aws())
    assert settings.endpoint_public_access_cidrs == tuple(cidrs)


def test_a_reservation_by_the_hour_makes_no_sense() -> None:
    found = problems({**BY_THE_HOUR, "reservationId": "cr-0123456789abcdef0"})
    assert "capacity is on-demand" in found["reservationId"]
    without = {key: value for key, value in BY_THE_HOUR.items() if key != "availabilityZoneId"}
    assert list(problems(without)) == ["availabilityZoneId"]


@pytest.mark.parametrize(
    ("aws", "key", "says"),
    [
        (Aws(instance_type="p5en.48xlarge"), "instanceType", "holds p5en.48xlarge. Set it to p5en.48xlarge"),
        (Aws(state="expired"), "reservationId", "is expired"),
        (Aws(state="payment-pending"), "reservationId", "a payment can take AWS 12 hours"),
        (Aws(state="payment-failed"), "reservationId", "is payment-failed"),
        (Aws(silent=True), "reservationId", "AWS did not show cr-0123456789abcdef0 in us-west-2: No credentials"),
    ],
)
def test_what_aws_says_against_a_reservation_is_told(aws: Aws, key: str, says: str) -> None:
    found = problems(BLOCK, aws)
    assert list(found) == [key]
    assert says in found[key]


@pytest.mark.parametrize("state", ["scheduled", "active", "delayed"])
def test_a_bought_block_is_usable_before_it_starts(state: str) -> None:
    assert judge(BLOCK, Aws(state=state)).reservation_id


def test_a_stated_zone_must_be_the_reservations() -> None:
    assert judge({**BLOCK, "availabilityZoneId": "usw2-az2"}, Aws()).availability_zone_id == "usw2-az2"
    found = problems({**BLOCK, "availabilityZoneId": "usw2-az4"})
    assert "the reservation is in usw2-az2" in found["availabilityZoneId"]


@pytest.mark.parametrize(
    ("raw", "aws", "key", "says"),
    [
        (BY_THE_HOUR, Aws(silent=True), "region", "did not list the zones of sa-east-1: No credentials"),
        (
            BLOCK,
            Aws(zone_id="usw2-lax1-az1"),
            "availabilityZoneId",
            "usw2-lax1-az1 is not among the zones of us-west-2",
        ),
        (BLOCK, Aws(zones=("usw2-az2",)), "availabilityZoneId", "AWS lists only usw2-az2 in us-west-2"),
        (BLOCK, Aws(zones=()), "availabilityZoneId", "that EKS can use: none"),
    ],
)
def test_a_missing_zone_is_a_problem_of_a_new_stack_only(
    raw: Mapping[str, object], aws: Aws, key: str, says: str
) -> None:
    settings = judge(raw, aws)
    assert settings.second_zone_id is None
    [problem] = settings.zone_problems
    assert problem.key == key
    assert says in str(problem)
    assert {key, "logRetentionDays"} == set(problems({**raw, "logRetentionDays": "8"}, aws))


def test_a_malformed_key_does_not_hide_what_aws_says_about_others() -> None:
    found = problems({**BLOCK, "logRetentionDays": "8", "model": "gpt-2"}, Aws(state="expired"))
    assert set(found) == {"logRetentionDays", "model", "reservationId"}


def test_each_key_of_the_stack_file_is_documented_in_the_project_file() -> None:
    project = yaml.safe_load((Path(__file__).resolve().parents[3] / "Pulumi.yaml").read_text())
    documented = {key: entry for key, entry in project["config"].items() if ":" not in key}
    assert set(documented) == set(REMEDIES)
    assert all(entry["description"] for entry in documented.values())
    # Without a default the engine would stop at the first key that is missing, before the program can judge them all.
    defaults = {key: entry["default"] for key, entry in documented.items()}
    assert {key: value for key, value in defaults.items() if value not in ("", [])} == {
        "capacity": StackFile().capacity,
        "instanceCount": StackFile().instance_count,
        "logRetentionDays": StackFile().log_retention_days,
    }
