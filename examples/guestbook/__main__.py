"""`python -m examples.guestbook`, and `python examples/guestbook`."""

import runpy
import sys
from pathlib import Path

if __package__:
    from .serving import main

    main()
else:  # started as a folder, whose modules look for each other in a package
    place = Path(__file__).resolve().parent
    sys.path[0] = str(place.parent)
    runpy.run_module(place.name, run_name="__main__", alter_sys=True)
