"""What reruns share: the command, resumable parts, verdicts on claims, pages, figures, readings."""
