"""How long an engine operation took, from what depends on what."""

from datetime import timedelta

import pytest

from rehearsal.engine.critical_path import Mutation, Resources, critical_path, stack_resources

# One delay a letter; `free` takes no time.
LENGTHS = {"free": 0, "a": 10, "b": 20, "c": 5, "cluster": 600}


def duration(name: str) -> timedelta:
    return timedelta(seconds=LENGTHS[name])


def urn(name: str) -> str:
    return f"urn:pulumi:dev::shop::aws:x/y:Z::{name}"


def entry(
    name: str, *needs: str, parent: str = "", custom: bool = True, provider: str = "", **more: object
) -> dict[str, object]:
    return {
        "urn": urn(name),
        "type": "aws:x/y:Z",
        "custom": custom,
        "dependencies": [urn(need) for need in needs],
        "parent": urn(parent) if parent else "",
        "provider": f"{urn(provider)}::some-id" if provider else "",
        **more,
    }


def graph(*entries: dict[str, object]) -> Resources:
    return stack_resources({"version": 3, "checkpoint": {"latest": {"resources": list(entries)}}})


def created(name: str, delay: str) -> Mutation:
    return Mutation(urn=urn(name), kind="create", delay=delay)


def deleted(name: str, delay: str) -> Mutation:
    return Mutation(urn=urn(name), kind="delete", delay=delay)


CHAIN = (entry("one"), entry("two", "one"), entry("three", "two"))
FORK = (entry("one"), entry("two", "one"), entry("three", "one"))


@pytest.mark.parametrize(
    ("entries", "mutations", "seconds"),
    [
        pytest.param((), (), 0, id="nothing"),
        pytest.param(
            CHAIN, (created("one", "a"), created("two", "b"), created("three", "c")), 35, id="a chain adds up"
        ),
        pytest.param(FORK, (created("one", "a"), created("two", "b"), created("three", "c")), 30, id="a fork overlaps"),
        pytest.param(
            CHAIN, (created("one", "a"), created("three", "c")), 15, id="what was there already costs nothing"
        ),
        pytest.param((), (created("one", "a"),), 10, id="a resource that is not in the state stands alone"),
        pytest.param(
            (entry("one"), entry("two", propertyDependencies={"vpcId": [urn("one")], "none": None})),
            (created("one", "a"), created("two", "b")),
            30,
            id="a property's dependency counts",
        ),
        pytest.param(
            (entry("cluster"), entry("k8s", "cluster"), entry("release", provider="k8s")),
            (created("cluster", "cluster"), created("release", "c")),
            605,
            id="a resource waits for its provider",
        ),
        pytest.param(
            (entry("box", custom=False), entry("inside", parent="box"), entry("after", "box")),
            (created("inside", "b"), created("after", "a")),
            30,
            id="who needs a component needs what is in it",
        ),
        pytest.param(
            (entry("box", custom=False), entry("one", parent="box"), entry("two", parent="box")),
            (created("one", "b"), created("two", "a")),
            20,
            id="children of one parent do not wait for each other",
        ),
    ],
)
def test_creating_takes_the_longest_chain(
    entries: tuple[dict[str, object], ...], mutations: tuple[Mutation, ...], seconds: int
) -> None:
    assert critical_path({}, graph(*entries), mutations, duration) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("entries", "mutations", "seconds"),
    [
        pytest.param(
            CHAIN, (deleted("one", "a"), deleted("two", "b"), deleted("three", "c")), 35, id="a chain adds up"
        ),
        pytest.param(
            FORK, (deleted("one", "a"), deleted("two", "b"), deleted("three", "c")), 30, id="the base goes last"
        ),
        pytest.param(
            (entry("two"), entry("three"), entry("one", "two", "three")),
            (deleted("one", "a"), deleted("two", "b"), deleted("three", "c")),
            30,
            id="what one needs goes side by side",
        ),
    ],
)
def test_deleting_runs_the_chains_backwards_in_the_state_before(
    entries: tuple[dict[str, object], ...], mutations: tuple[Mutation, ...], seconds: int
) -> None:
    assert critical_path(graph(*entries), {}, mutations, duration) == timedelta(seconds=seconds)


def test_deletions_follow_everything_else_as_in_the_engine() -> None:
    took = critical_path(graph(entry("old")), graph(entry("new")), (created("new", "a"), deleted("old", "b")), duration)
    assert took == timedelta(seconds=30)


def test_the_order_in_which_an_engine_reports_makes_no_difference() -> None:
    asked: list[str] = []

    def draws(name: str) -> timedelta:
        asked.append(name)
        return timedelta(seconds=len(asked))

    mutations = (created("one", "a"), created("two", "b"), created("three", "c"))
    first = critical_path({}, graph(*CHAIN), mutations, draws)
    one_way, asked[:] = list(asked), []
    assert critical_path({}, graph(*CHAIN), reversed(mutations), draws) == first
    assert asked == one_way


def test_a_resource_that_waits_for_its_deletion_does_not_hide_its_replacement() -> None:
    resources = graph(entry("one"), entry("two", "one"), {**entry("two"), "delete": True})
    assert resources[urn("two")].needs == {urn("one")}


def test_the_stack_itself_is_no_step() -> None:
    stack = {"urn": urn("root"), "type": "pulumi:pulumi:Stack", "custom": False}
    assert urn("root") not in graph(stack, entry("one", parent="root"))


@pytest.mark.parametrize(
    "checkpoint", [{}, {"checkpoint": {"latest": None}}, {"checkpoint": {"latest": {"resources": None}}}]
)
def test_an_empty_state_has_no_resources(checkpoint: dict[str, object]) -> None:
    assert stack_resources(checkpoint) == {}
