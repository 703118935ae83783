"""`python -m haloc` is the `haloc` command."""

import sys

from haloc.cli.main import main

sys.exit(main())
