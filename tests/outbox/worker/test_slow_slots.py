"""The division of places among owners and their webhooks."""

from hypothesis import strategies as st

from outbox.worker.slow_slots import SlowSlots

OF_WEBHOOK = 63
OF_OWNER = 64


def shares(needs: dict[str, list[int]], places: int) -> dict[str, list[int]]:
    """Return what each webhook of each owner gets."""
    divided = SlowSlots(OF_WEBHOOK, OF_OWNER)
    for owner, numbers in needs.items():
        for number in numbers:
            divided.change(owner, (0, number), (0, 0))
    return {
        owner: [
            min(number, divided.share(owner, divided.part(owner, places))) for number in numbers
        ]
        for owner, numbers in needs.items()
    }


def test_what_one_does_not_need_goes_to_the_others() -> None:
    assert shares({"a": [40, 3, 3]}, 512) == {"a": [40, 3, 3]}
    assert shares({"a": [60, 3, 60]}, 512) == {"a": [30, 3, 30]}
    assert shares({"a": [60], "b": [10], "c": [60]}, 90) == {"a": [40], "b": [10], "c": [40]}
    assert shares({"a": [60], "b": [1] * 60}, 40) == {"a": [20], "b": [0] * 60}
    assert shares({"a": [60]}, 0) == {"a": [0]}


owners = st.dictionaries(
    st.sampled_from("abcdefghij"), st.lists(st.integers(0, OF_WEBHOOK), max_size=20)
)
