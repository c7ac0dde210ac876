"""The real engine on simulated time, with faults of the store and of receivers that a seed decides.

Everything runs on one thread and in virtual time, so that a run repeats byte for byte.
"""
