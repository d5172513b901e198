"""From the raw records of the taps to the events of a trace."""
