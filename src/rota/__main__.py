"""`python -m rota`: the command line, without the installed script."""

from rota.cli import main

if __name__ == "__main__":  # a spawned process of an isolated body imports this module under another name
    main()
