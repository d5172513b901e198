"""Barge-ins: what decided, what leaked after it, and why."""
