"""The pages on which an owner moves records on: the board, the calendar, verbs, print."""
