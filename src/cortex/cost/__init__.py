"""Cost: what a program does for a request, and how long that takes on a machine."""
