"""Names a resource, its fields and their options to a reader; each resource has a name."""

from dataclasses import dataclass

from gateway.console.layout.display import word_of, words_of
from gateway.records.resource import Resource
from gateway.texts import Texts


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of a resource's pages, each its own or the one of every resource."""

    texts: Texts
    resource: Resource

    @property
    def title(self) -> str:
        """The name of the resource, as of a list of it."""
        return self.texts.get(f"{self.resource.plural}.title", words_of(self.resource.plural))

    @property
    def lead(self) -> str:
        """What the records are; may be empty."""
        return self.texts.get(f"{self.resource.plural}.lead", "")

    @property
    def all(self) -> str:
        """The tab that shows all records."""
        return self._of(f"{self.resource.plural}.all", "records.all")

    @property
    def empty(self) -> str:
        """What a list without records says."""
        return self._of(f"{self.resource.plural}.empty", "records.empty")

    @property
    def empty_help(self) -> str:
        """What to do about it."""
        known = f"{self.resource.plural}.empty_help"
        return self.texts(known) if known in self.texts else self.texts("records.empty_help")

    @property
    def new(self) -> str:
        """The title of the empty form, and the link to it."""
        return self._of(f"{self._noun}.new.title", "records.new")

    @property
    def submit(self) -> str:
        """The button that creates a record."""
        return self._of(f"{self._noun}.new.submit", "records.create")

    @property
    def edit(self) -> str:
        """The title of the form of a record."""
        return self._of(f"{self._noun}.edit.title", "records.edit_title")

    @property
    def delete(self) -> str:
        """The question before a delete."""
        return self._of(f"{self._noun}.delete.title", "records.delete_title")

    @property
    def delete_lead(self) -> str:
        """What a delete means."""
        return self._of(f"{self._noun}.delete.lead", "records.delete_lead")

    def tab(self, name: str, value: str) -> str:
        """Return the text of a value of the filter `name`."""
        known = f"{self.resource.plural}.choice.{value}"
        if known in self.texts:
            return self.texts(known)
        word = self.value(name, value)
        return f"{self._label(name)}: {word}" if value in ("true", "false") else word

    def value(self, name: str, value: str) -> str:
        """Return the text of a value of the filter `name` beside its label."""
        if value in ("true", "false"):
            return self.texts("value.yes" if value == "true" else "value.no")
        return word_of(self.texts, value, self.resource.noun)

    def filter(self, name: str) -> str:
        """Return the label of a filter."""
        return self.texts.get(f"filter.{name}", self._label(name))

    def _label(self, name: str) -> str:
        return label_of(self.texts, name, self.resource.noun)

    @property
    def _noun(self) -> str:
        return self.resource.noun.replace(" ", "_")

    def _of(self, key: str, every: str) -> str:
        return self.texts(key if key in self.texts else every)


def label_of(texts: Texts, name: str, noun: str = "") -> str:
    """Return the label of a field: a text of the catalogue, or the words of its name.

    A resource may have a label of its own: in Portuguese it agrees with the `noun`.
    """
    own = f"field.{noun.replace(' ', '_')}.{name}"
    return texts(own) if own in texts else texts.get(f"field.{name}", words_of(name))
