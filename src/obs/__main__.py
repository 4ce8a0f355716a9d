"""`python -m obs` is `obs`."""

import sys

from obs.cli import main

sys.exit(main())
