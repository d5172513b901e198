"""Frame accounting at the audio sink of LiveKit voice agents.

    import probe
    recording = probe.attach(session, "call.jsonl")   # before or after session.start()

What runs inside a call lives here; reading and judging traces is the package `reports`.
"""

from probe.attach import Recording, attach

__all__ = ["Recording", "attach"]
