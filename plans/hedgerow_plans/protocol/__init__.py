"""What operator and agent say to each other: topics, messages, signed envelopes, program parts."""
