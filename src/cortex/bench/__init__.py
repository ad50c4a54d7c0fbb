"""What runs beside Cortex, and how everything is timed: peers, limit, machine, data, suites."""
