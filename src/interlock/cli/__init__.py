"""The command line, `interlock`: parse, call the public API, show.

Each module holds the commands of one subject and is imported when one of them is asked for; what is
heavy is imported inside a command. What a command prints goes through `output`, which lets no name
of a store forge a line; how it ends, through `ending`.
"""

from interlock.cli.program import main, program

__all__ = ["main", "program"]
