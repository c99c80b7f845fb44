"""`python -m interlock` is the command `interlock`."""

from interlock.cli import main

if __name__ == "__main__":
    main()
