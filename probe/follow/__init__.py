"""Content matching: which captured sample was pushed, which pushed sample was sent."""
