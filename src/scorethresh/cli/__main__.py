"""Run the command as ``python -m scorethresh.cli``."""

import sys

from .commands import main

sys.exit(main())
