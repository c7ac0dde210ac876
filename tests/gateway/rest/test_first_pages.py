"""Tests that a first page which is sent again is the one that the database has now."""

from gateway.rest.first_pages import First, FirstPages, Key


def first(size: int) -> First:
    return First([1, False], b"x" * size, None)


def test_the_memory_of_kept_pages_is_bounded() -> None:
    pages = FirstPages(most=160_000)
    keys: list[Key] = [("contacts", f"o{n}", 20) for n in range(100)]
    for key in keys:
        pages.put(key, first(8_000))
        # The first one stays, because it is read again and again.
        assert pages.get(keys[0]) is not None
        assert pages.held <= pages.most
    alive = [key for key in keys if pages.get(key) is not None]
    assert alive == [keys[0], *keys[-(len(alive) - 1) :]]
    assert len(alive) == 160_000 // first(8_000).size
    pages.put(keys[0], first(1_000))
    assert pages.held == sum(found.size for key in alive if (found := pages.get(key)) is not None)
    pages.put(keys[0], first(10_001))
    assert pages.get(keys[0]) is None
