"""`python -m jittok`: the command line."""

from jittok.cli import main

raise SystemExit(main())
