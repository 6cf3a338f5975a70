"""The main program of the zygote: `python galatea_zygote.py CONTROL_FD TENANCY MODULE...`.

Imports MODULE... before it forks. TENANCY is empty, or, for a zygote that forks workers of tenants, the arguments of `tenant.facts` as
JSON. The program's own modules are imported from this directory.
"""

from galatea_worker.zygote import main

if __name__ == "__main__":
    main()
