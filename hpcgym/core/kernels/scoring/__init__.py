"""What jobs are ordered by: rules, estimates, users' records, and the regression."""
