"""`python -m app` is `documind`."""

from app.cli.main import main

if __name__ == "__main__":
    main()
