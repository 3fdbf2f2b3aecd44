"""The demo: a shop's afternoon, worked by real worker processes on a real store, with every job accounted for at the end."""
