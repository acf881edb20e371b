"""What recording costs, ours and others', measured side by side: ``make bench``. See docs/benchmarks.md."""
