"""The zygote as a program: `python galatea_zygote.py CONTROL_FD TENANCY MODULE...`; this directory is what it imports from.

TENANCY is empty, or JSON for a zygote that forks workers of tenants: the arguments of `tenant.facts`.
"""

from galatea_worker.zygote import main

if __name__ == "__main__":
    main()
