"""`python -m cortex.cli` is `cortex`."""

from cortex.cli.main import main

main()
