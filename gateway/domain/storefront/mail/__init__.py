"""Mails to the customers of stores: their queue, their texts and their tokens."""
