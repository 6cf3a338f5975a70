"""The zygote's main program:

`python galatea_zygote.py CONTROL_FD TENANCY MODULE...`; it imports from this directory. TENANCY is empty, or JSON for a zygote that forks
workers of tenants: the arguments of `tenant.facts`.
"""

from galatea_worker.zygote import main

if __name__ == "__main__":
    main()
