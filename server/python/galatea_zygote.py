"""The zygote as a program: `python galatea_zygote.py CONTROL_FD MODULE...`; this directory is what it imports from."""

from galatea_worker.zygote import main

if __name__ == "__main__":
    main()
