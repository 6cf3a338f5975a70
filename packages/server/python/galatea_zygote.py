"""The main program of the zygote:

`python galatea_zygote.py CONTROL_FD TENANCY MODULE...`. Modules are imported from this directory. TENANCY is empty, or the arguments of
`tenant.facts` as JSON for a zygote that forks workers of tenants.
"""

from galatea_worker.zygote import main

if __name__ == "__main__":
    main()
