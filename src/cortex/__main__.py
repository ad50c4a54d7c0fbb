"""`python -m cortex` is `cortex`."""

from cortex.cli.main import main

main(prog_name="cortex")
