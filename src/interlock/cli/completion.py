"""`completion`: the script that makes a shell complete commands, options and actions."""

import sys

import click

from interlock.cli.output import say_json
from interlock.cli.session import Session, json_option, pass_session


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@pass_session
@click.pass_context
def completion(context: click.Context, session: Session, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      eval "$(interlock completion bash)"
    """
    from click.shell_completion import get_completion_class

    of_shell = get_completion_class(shell)
    assert of_shell is not None, "click knows the three shells"
    program = context.find_root().command
    script = of_shell(program, {}, "interlock", "_INTERLOCK_COMPLETE").source()
    if session.json:
        say_json({"shell": shell, "script": script})
    else:
        sys.stdout.write(f"{script}\n")
