"""What is seen where it happens: sink, source, wire, session, realtime model. No arithmetic."""
