"""Values on the wire, as pulumi/pulumi's own SDK writes and reads them."""

import pytest
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime import rpc

from rehearsal.providers.protocol import UNKNOWN, Refused, Wire


def struct(**fields: object) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(fields)
    return message


def secret(value: object) -> dict[str, object]:
    return {rpc._special_sig_key: rpc._special_secret_sig, "value": value}


def test_numbers_are_whole_where_they_can_be_and_nulls_are_left_out() -> None:
    wire = Wire.decode(struct(port=443.0, share=0.5, nothing=None, inside={"a": None, "b": True}))
    assert wire.values == {"port": 443, "share": 0.5, "inside": {"b": True}}
    assert isinstance(wire.values["port"], int)


@pytest.mark.parametrize("value", [rpc.UNKNOWN, [rpc.UNKNOWN], {"a": {"b": rpc.UNKNOWN}}])
def test_an_unknown_is_found_wherever_it_is_and_goes_back_as_it_came(value: object) -> None:
    message = struct(known="x", unknown=value)
    assert Wire.decode(message).unknown == ("unknown",)
    assert Wire.decode(message).encode() == message


def test_an_output_without_a_value_is_unknown() -> None:
    output = {rpc._special_sig_key: rpc._special_output_value_sig, "dependencies": []}
    assert Wire.decode(struct(one=output)).values == {"one": UNKNOWN}


@pytest.mark.parametrize("value", [secret("hush"), {"deep": [secret("hush")]}, {"a": "b", "c": secret({"d": "hush"})}])
def test_a_property_with_a_secret_inside_is_secret_as_a_whole(value: object) -> None:
    wire = Wire.decode(struct(open="x", closed=value))
    assert wire.secret == {"closed"}
    back = rpc.deserialize_properties(wire.encode())
    assert rpc.is_rpc_secret(back["closed"])
    assert back["open"] == "x"


def test_a_secret_stays_one_beside_an_open_value_of_the_same_name() -> None:
    both = Wire(values={"a": 1}, secret=frozenset({"a"})) | Wire(values={"a": 2})
    assert both == Wire(values={"a": 2}, secret=frozenset({"a"}))


def test_an_asset_is_refused_in_a_sentence() -> None:
    asset = {rpc._special_sig_key: rpc._special_asset_sig, "text": "x"}
    with pytest.raises(Refused, match="is not simulated"):
        Wire.decode(struct(code=asset))
