"""What reruns share: driver, resumable parts, page writer, readings that papers leave open."""
