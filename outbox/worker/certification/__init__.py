"""Certify a receiver: send it valid and invalid test events, and judge its responses.

`posts` builds the requests, `checks` lists them, `judging` judges responses, `run` does all of it.
It stores nothing, and sends no data of anybody.
"""
