"""The pure heart: declarations, decisions, the record and the refusals.

Nothing in here reads a clock, makes an identity, draws a random number or touches a file: what it
needs arrives as an argument, so that equal inputs give equal answers. Standard library only.
"""
