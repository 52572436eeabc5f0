"""What tasks' exact solvers and rules of thumb answer by: no data is made here."""
