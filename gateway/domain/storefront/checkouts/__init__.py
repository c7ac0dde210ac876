"""Checks out the carts of a store.

`form` checks what the buyer sends, `checkout` makes the order, and `repeats` finds the order of a
request that is sent again.
"""
