"""How cells of product lists are read, also those that are made to take long."""

import pytest

from gateway.domain.imports.shop_cells import images, paths, text_of
from gateway.records.values.folding import clean

LONG = 130_000


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a<b title='x>y'>b</b></p><ul><li>c &amp; d</ul>", "ab\n\n- c & d"),
        ("<p>a<script>if (a<b) x = '<p>'</script>b<style>p>a{}</style>", "ab"),
        ("<p title=it's>3 < 4<!-- > -->", "3 < 4"),
        ("<p>" + "<!--" * LONG, ""),
        ("<p>" + '<a ="' * LONG, '<a ="' * LONG),
        ("<p>" + "<" * LONG, "<" * LONG),
        ("<p>&#" + "1" * LONG + ";", "\ufffd"),
    ],
)
def test_html_is_read_as_text(html: str, text: str) -> None:
    assert text_of(html) == text


def test_no_cell_takes_the_square_of_its_length() -> None:
    urls = [one["url"] for one in images(["https://a,b.png,http://c;,d | e," + ",;" * LONG + "f"])]
    assert urls == ["https://a,b.png", "http://c;,d", "e," + ",;" * LONG + "f"]
    assert images(["a" + " |" * LONG + "b"]) == [{"url": "a"}, {"url": "b"}]
    assert paths("a > b / c, d" + " " * LONG + "e") == ["a", "b", "c", "d" + " " * LONG + "e"]
    assert clean(" \u2800" * LONG + "é") == "é"
