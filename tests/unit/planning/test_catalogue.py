"""What is known is sourced, and a model is only served where it fits."""

import dataclasses
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest

from planning import catalogue
from planning.catalogue import Catalogue, UnknownName, fits, load

KNOWN = load()


@pytest.mark.parametrize("constant", KNOWN.constants.values(), ids=lambda constant: constant.name)
def test_every_constant_says_where_it_comes_from(constant: catalogue.Constant) -> None:
    assert constant.value > 0
    assert constant.unit
    assert len(constant.source) > 10
    assert date.fromisoformat(constant.date) >= date(2024, 1, 1)
    assert constant.confidence in catalogue.CONFIDENCES


def test_prices_and_model_figures_are_among_the_constants() -> None:
    assert KNOWN.constant("p6-b300.48xlarge.block_usd_per_hour").value == Decimal("129.168")
    assert KNOWN.constant("kimi-k3.engine_start_cold_s") is KNOWN.model("kimi-k3").engine_start_cold_s


@pytest.mark.parametrize(
    "name",
    [
        "p6-b300.48xlarge",
        "p6-b200.48xlarge",
        "p5e.48xlarge",
        "p5en.48xlarge",
        "p5.48xlarge",
        "g6e.xlarge",
        "g6e.12xlarge",
        "g6.xlarge",
    ],
)
def test_an_instance_type_of_the_catalogue_has_gpus_and_memory(name: str) -> None:
    instance = KNOWN.instance_type(name)
    assert instance.gpus >= 1
    assert instance.allocatable_memory_mib < instance.memory_mib


@pytest.mark.parametrize(
    ("kind", "look_up"),
    [
        ("instance type", Catalogue.instance_type),
        ("model", Catalogue.model),
        ("region", Catalogue.place),
        ("constant", Catalogue.constant),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(kind: str, look_up: Any) -> None:
    with pytest.raises(UnknownName, match=f"unknown {kind} 'nonsense'; known: ") as caught:
        look_up(KNOWN, "nonsense")
    assert caught.value.known == tuple(sorted(caught.value.known))


@pytest.mark.parametrize(
    ("model", "instance", "fit"),
    [
        ("kimi-k3", "p6-b300.48xlarge", True),
        ("kimi-k3", "p6-b200.48xlarge", False),
        ("kimi-k3", "p5en.48xlarge", False),
        ("kimi-k3", "g6e.12xlarge", False),
        ("qwen3-0.6b", "g6.xlarge", True),
        ("qwen3-0.6b", "g6e.xlarge", True),
        ("qwen3-0.6b", "m7i.large", False),
    ],
)
def test_a_model_fits_where_its_longest_request_does(model: str, instance: str, fit: bool) -> None:
    known = KNOWN.model(model)
    answer = fits(known, KNOWN.instance_type(instance))
    assert answer.fits is fit
    assert model in answer.sentence
    assert instance in answer.sentence


def test_a_model_stops_fitting_one_token_above_its_room() -> None:
    model, instance = KNOWN.model("kimi-k3"), KNOWN.instance_type("p6-b300.48xlarge")
    fixed = fits(replace(model, max_model_len=0), instance)
    most = (fixed.available_bytes - fixed.needed_bytes) // model.kv_bytes_per_token
    assert fits(replace(model, max_model_len=most), instance).fits
    assert not fits(replace(model, max_model_len=most + 1), instance).fits


def test_the_regions_are_those_of_the_pinned_botocore() -> None:
    assert sorted(KNOWN.regions) == sorted(boto3.Session().get_available_regions("ec2", "aws"))


def test_the_catalogue_is_what_its_files_say(tmp_path: Path) -> None:
    for file in catalogue.DATA.glob("*.toml"):
        (tmp_path / file.name).write_text(file.read_text().replace('value = "0.045"', 'value = "0.054"'))
    assert load(tmp_path).constant("nat_gateway_usd_per_started_hour").value == Decimal("0.054")
    assert load(tmp_path) is load(tmp_path)


def test_nothing_in_the_catalogue_can_be_changed_by_its_reader() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        KNOWN.model("kimi-k3").weight_bytes = 0  # type: ignore[misc]
    with pytest.raises(TypeError):
        KNOWN.models["other"] = KNOWN.model("kimi-k3")  # type: ignore[index]
