"""Parses arguments; an error is reported by the command that it concerns."""

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser whose errors show the usage and the example of their own command."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n{self.epilog}\n")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Report arguments that the command does not take. They may be secret keys."""
        option = words[0].partition("=")[0]
        if option.startswith("-"):
            close = difflib.get_close_matches(option, self._option_string_actions, n=1)
            self.error(f"unknown option {option}" + "".join(f"; did you mean {n}?" for n in close))
        named = " ".join(str(action.metavar) for action in self._get_positional_actions())
        self.error(f"too many arguments; it takes {named or 'options'} only")

    def incomplete(self) -> NoReturn:
        """Print the help of a parser whose command was not given."""
        self.print_help(sys.stderr)
        self.exit(2)
