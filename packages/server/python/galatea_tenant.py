"""Starts a tenant's own program under the tenant's confinement: `python galatea_tenant.py PLAN COMMAND...`."""

from galatea_worker.tenant import main

if __name__ == "__main__":
    main()
