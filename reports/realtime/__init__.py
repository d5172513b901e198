"""The provider's side of a call with a realtime model."""
