"""Adapters: one file a protocol, sans-I/O; `wire.py` is the one door to the network."""
