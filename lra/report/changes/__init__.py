"""What changed between two stores, or differs between two mechanisms of one."""
