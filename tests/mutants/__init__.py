"""Small faults that the tests must notice: `make mutants` puts them into the code one by one."""
