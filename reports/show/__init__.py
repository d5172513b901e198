"""Renderers: each a pure function from analyses to text."""
