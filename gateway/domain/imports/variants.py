"""Makes each variant of a shop's product a line of its own, with what the product has in common.

A product of Carteiro has no variants: each becomes a product, named after both. Shopify and
Nuvemshop repeat the handle of a product in the lines of its variants and of its further images;
WooCommerce names the parent of a variation.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from gateway.domain.import_lines import Line
from gateway.domain.imports.columns import guess
from gateway.domain.imports.splitting import bad
from gateway.records.resource import Resource
from gateway.records.values.csv_cells import plain
from gateway.records.values.strictjson import dumps

COMMON = ("name", "description", "categories", "published", "active")
"""What the first line of a product says for its variants."""
OWN = ("price", "salePrice", "sku", "option")
"""What a line of a variant has, and a line of a further image has not."""
MOST_LINES = 5_000
"""Lines of a product."""
MOST_FILLED = 67_108_864
"""Characters of a file that are written into the lines of variants."""
MOST_PARENTS = 1_000
"""Parents whose variations may follow."""


class Variants:
    """Completes the lines of a product list in the order of the file."""

    def __init__(self, resource: Resource, headings: Sequence[str]) -> None:
        targets = guess(resource, headings)
        self._places: dict[str, list[int]] = {}
        for place, target in enumerate(targets):
            self._places.setdefault(target, []).append(place)
        self.by_handle = {"slug", "option", "name"} <= self._places.keys()
        self.by_parent = {"kind", "parent"} <= self._places.keys()
        self._group: list[Line] = []
        self._parents: OrderedDict[str, Line] = OrderedDict()
        self._used: set[str] = set()
        self._filled = 0

    def take(self, lines: Sequence[Line]) -> Iterator[Line]:
        """Yield the lines that are complete."""
        for line in lines:
            if self.by_handle:
                handle = self._cell(line, "slug")
                if self._group and (not handle or handle != self._cell(self._group[0], "slug")):
                    yield from self._grouped()
                self._group.append(line)
                if len(self._group) > MOST_LINES:
                    raise bad(line[0], "too_many", f"A product has at most {MOST_LINES:,} lines.")
            elif self.by_parent:
                yield from self._related(line)
            else:
                yield line

    def end(self) -> Iterator[Line]:
        """Yield the last lines, and the parents without variations."""
        yield from self._grouped()
        while self._parents:
            yield from self._drop_parent()

    def _cell(self, line: Line, target: str) -> str:
        """Return the first filled cell of a target."""
        places = self._places.get(target, ())
        cells = (line[1][place] for place in places if place < len(line[1]))
        return next((text for cell in cells if (text := plain(cell))), "")

    def _grouped(self) -> Iterator[Line]:
        """Yield the variants of a product, all with its images."""
        group, self._group = self._group, []
        if len(group) < 2:
            yield from group
            return
        images = [
            {"url": url, "alt": alt} if (alt := self._cell(line, "imageAlt")) else {"url": url}
            for line in group
            if (url := self._cell(line, "images"))
        ]
        first = group[0]
        number = 0
        for line in group:
            if line is not first and not any(self._cell(line, target) for target in OWN):
                continue
            self._fill(line, first, COMMON)
            self._put(line, "images", dumps(images) if images else "")
            if number:
                # Two products of a store cannot have one address.
                self._put(line, "slug", "")
            number += 1
            yield line

    def _related(self, line: Line) -> Iterator[Line]:
        kind = self._cell(line, "kind").casefold()
        if kind.startswith("variable"):
            keys = {self._cell(line, "sku"), f"id:{self._cell(line, 'id')}"} - {"", "id:"}
            for key in keys:
                self._parents[key] = line
            if not keys:
                yield line
            while len(self._parents) > MOST_PARENTS:
                yield from self._drop_parent()
            return
        if kind.startswith("variation"):
            parent = self._cell(line, "parent")
            self._used.add(parent)
            if parent in self._parents:
                self._fill(line, self._parents[parent], (*COMMON, "images"))
        yield line

    def _drop_parent(self) -> Iterator[Line]:
        """Drop the oldest parent; yield it if the file has no variation of it."""
        key, line = self._parents.popitem(last=False)
        others = [name for name, one in self._parents.items() if one is line]
        for name in others:
            del self._parents[name]
        if self._used.isdisjoint((key, *others)):
            yield line

    def _fill(self, line: Line, first: Line, targets: Sequence[str]) -> None:
        """Fill the blank cells of a line from another one."""
        for target in targets:
            if line is not first and not self._cell(line, target):
                for place in self._places.get(target, ()):
                    if place < min(len(line[1]), len(first[1])):
                        self._write(line, place, first[1][place])

    def _put(self, line: Line, target: str, text: str) -> None:
        for place in self._places.get(target, ())[:1]:
            if place < len(line[1]):
                self._write(line, place, text)

    def _write(self, line: Line, place: int, text: str) -> None:
        line[1][place] = text
        self._filled += len(text)
        if self._filled > MOST_FILLED:
            raise bad(
                line[0],
                "too_long",
                f"The variants of the file repeat more than {MOST_FILLED:,} characters of their "
                "products; split the file.",
            )
