"""`python -m accuacl`: the command line."""

from accuacl.cli import main

if __name__ == "__main__":
    main()
