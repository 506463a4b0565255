"""`python -m counterfoil`: the command line."""

from .console.cli import main

main()
