"""Lets ``python -m scorethresh.cli`` run the command."""

import sys

from .command import main

sys.exit(main())
